/**
 * The mandatory and suggested flow schemas and priority levels. Mandatory ones are always restored, suggested ones
 * unless operators set the annotation `apf.kubernetes.io/autoupdate-spec` to `false`.
 */
import { flowSchemaKind } from "../../api/flowcontrol/flow-schema/kind.ts";
import { mandatoryFlowSchemas, mandatoryPriorityLevels } from "../../api/flowcontrol/mandatory-configuration.ts";
import { priorityLevelConfigurationKind } from "../../api/flowcontrol/priority-level-configuration/kind.ts";
import { suggestedFlowSchemas, suggestedPriorityLevels } from "../../api/flowcontrol/suggested-configuration.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { create } from "../../registry/create.ts";
import { remove } from "../../registry/delete.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Scope } from "../../registry/scope.ts";
import { update } from "../../registry/update.ts";
import { applyDefaults } from "../../schema/defaults.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { ignoreConflict, systemScope } from "./ensure.ts";

const AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec";

interface WithSpec extends ApiObject {
  readonly spec?: unknown;
}

type Specs = Readonly<Record<string, unknown>>;

export async function ensureFlowControl(registries: Registries, signal: AbortSignal): Promise<void> {
  await ensureAll(registries, priorityLevelConfigurationKind, mandatoryPriorityLevels, suggestedPriorityLevels, signal);
  await ensureAll(registries, flowSchemaKind, mandatoryFlowSchemas, suggestedFlowSchemas, signal);
}

async function ensureAll<T extends WithSpec>(
  registries: Registries,
  kind: Kind<T>,
  mandatory: Specs,
  suggested: Specs,
  signal: AbortSignal,
): Promise<void> {
  const registry = registries.of<WithSpec>(kind);
  const scope = { ...systemScope("", signal), group: kind.group };
  const { items } = await registry.objects.list(registry.prefix(scope));
  const found = new Map(items.map((item) => [item.metadata?.name ?? "", item]));
  const writes = [
    ...Object.entries(mandatory).map(([name, spec]) => ensureOne(registry, scope, found.get(name), name, spec, true)),
    ...Object.entries(suggested).map(([name, spec]) => ensureOne(registry, scope, found.get(name), name, spec, false)),
    // Objects of an earlier release that are still updated automatically.
    ...items
      .map(({ metadata }) => metadata)
      .filter((metadata) => metadata?.annotations?.[AUTO_UPDATE] === "true")
      .map((metadata) => metadata?.name ?? "")
      .filter((name) => !Object.hasOwn(mandatory, name) && !Object.hasOwn(suggested, name))
      .map((name) => ignoreConflict(remove(registry, scope, name))),
  ];
  await Promise.all(writes);
}

async function ensureOne(
  registry: Registry<WithSpec>,
  scope: Scope,
  found: WithSpec | undefined,
  name: string,
  spec: unknown,
  mandatory: boolean,
): Promise<void> {
  const annotations = { [AUTO_UPDATE]: "true" };
  const wanted = { metadata: { name, annotations }, spec };
  if (found === undefined) return await ignoreConflict(create(registry, scope, wanted));
  const autoUpdate = found.metadata?.annotations?.[AUTO_UPDATE];
  // An object without the annotation is updated automatically while its spec has never changed.
  const automatic =
    mandatory || autoUpdate === "true" || (autoUpdate === undefined && found.metadata?.generation === 1);
  if (!automatic) return;
  const next = applyDefaults(registry.kind.schema, {
    ...found,
    metadata: { ...found.metadata, annotations: { ...found.metadata?.annotations, ...annotations } },
    spec,
  });
  if (autoUpdate === "true" && deepEqual(next.spec, found.spec)) return;
  await ignoreConflict(update(registry, scope, name, next));
}
