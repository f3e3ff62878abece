/**
 * The mandatory and suggested flow schemas and priority levels. Mandatory ones are always restored, suggested ones
 * unless operators set the annotation `apf.kubernetes.io/autoupdate-spec` to `false`.
 */
import { flowSchemaKind } from "../../api/flowcontrol/flow-schema/kind.ts";
import { mandatoryFlowSchemas, mandatoryPriorityLevels } from "../../api/flowcontrol/mandatory-configuration.ts";
import { priorityLevelConfigurationKind } from "../../api/flowcontrol/priority-level-configuration/kind.ts";
import type { PriorityLevelConfigurationSpec } from "../../api/flowcontrol/priority-level-configuration/schema.ts";
import { suggestedFlowSchemas, suggestedPriorityLevels } from "../../api/flowcontrol/suggested-configuration.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
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
/** Kubernetes' name of the controller in managed fields. */
const FIELD_MANAGER = { fieldManager: "api-priority-and-fairness-config-producer-v1" };
/** The level whose mandatory spec has fields that operators may set. */
const EXEMPT = "exempt";

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
  // Managed fields name the group as Kubernetes does.
  const scope = { ...systemScope("", signal), group: kubernetesGroup(kind.group) };
  const { items } = await registry.objects.list(registry.prefix(scope));
  const found = new Map(items.map((item) => [item.metadata?.name ?? "", item]));
  const writes = [
    ...Object.entries(mandatory).map(([name, spec]) => ensureOne(registry, scope, found.get(name), name, spec, true)),
    ...Object.entries(suggested).map(([name, spec]) => ensureOne(registry, scope, found.get(name), name, spec, false)),
    // Objects of an earlier release that are still updated automatically.
    ...items
      .filter((item) => autoUpdateOf(item) === true)
      .map(({ metadata }) => metadata?.name ?? "")
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
  wantedSpec: unknown,
  mandatory: boolean,
): Promise<void> {
  if (found === undefined) {
    const wanted = { metadata: { name, annotations: { [AUTO_UPDATE]: "true" } }, spec: wantedSpec };
    return await ignoreConflict(create(registry, scope, wanted, FIELD_MANAGER));
  }
  const annotation = autoUpdateOf(found);
  // An object without the annotation is updated automatically while its spec has never changed.
  const isAutomatic = mandatory || (annotation ?? found.metadata?.generation === 1);
  const annotations = { ...found.metadata?.annotations, [AUTO_UPDATE]: String(isAutomatic) };
  const spec = name === EXEMPT ? keepExemptFields(wantedSpec, found.spec) : wantedSpec;
  const next = applyDefaults(registry.kind.schema, {
    ...found,
    metadata: annotation === isAutomatic ? found.metadata : { ...found.metadata, annotations },
    spec: isAutomatic ? spec : found.spec,
  });
  if (annotation === isAutomatic && deepEqual(next.spec, found.spec)) return;
  await ignoreConflict(update(registry, scope, name, next, FIELD_MANAGER));
}

/** Undefined for a missing annotation, and for one that is no boolean as Go's `strconv.ParseBool` reads it. */
function autoUpdateOf({ metadata }: ApiObject): boolean | undefined {
  const value = metadata?.annotations?.[AUTO_UPDATE] ?? "";
  if (/^(?:1|t|T|TRUE|true|True)$/.test(value)) return true;
  return /^(?:0|f|F|FALSE|false|False)$/.test(value) ? false : undefined;
}

/** What the exempt level may lend and its shares are up to the operator. The flow schema of that name has none. */
function keepExemptFields(wanted: unknown, found: unknown): unknown {
  const { exempt } = (found ?? {}) as Partial<PriorityLevelConfigurationSpec>;
  return exempt === undefined ? wanted : { ...(wanted as PriorityLevelConfigurationSpec), exempt };
}
