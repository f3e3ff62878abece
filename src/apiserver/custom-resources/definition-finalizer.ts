/** The finalizer of definitions: deletes all objects of a deleted definition, then removes the finalizer. */
import { createCustomKind } from "../../api/apiextensions/custom-resource/kind.ts";
import type {
  CustomResourceDefinition,
  CustomResourceDefinitionCondition,
} from "../../api/apiextensions/custom-resource-definition/schema.ts";
import {
  CLEANUP_FINALIZER,
  isConditionTrue,
  setCondition,
} from "../../api/apiextensions/custom-resource-definition/status.ts";
import type { ApiObject, Converter } from "../../api/kind.ts";
import { deleteCollection } from "../../registry/delete-collection.ts";
import { list } from "../../registry/list.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Scope } from "../../registry/scope.ts";
import type { Clock } from "../../std/time/clock.ts";
import { parseValue } from "../../storage/codec.ts";
import { prefixRange } from "../../storage/store.ts";

type Condition = Omit<CustomResourceDefinitionCondition, "lastTransitionTime">;
type DefinitionUpdate = (definition: CustomResourceDefinition, now: string) => CustomResourceDefinition;

export interface FinalizerDeps {
  readonly registries: Registries;
  readonly clock: Clock;
  readonly scope: Scope;
  /** Updates the stored definition with `change`; rejects with a 404 when it does not exist. */
  readonly write: (name: string, change: DefinitionUpdate) => Promise<unknown>;
}

/** The interval of checks for objects with finalizers. */
const RETRY_MS = 500;
/** The number of checks after which the condition reports a timeout. */
const CHECK_ROUNDS = 120;

export function needsFinalizer({ metadata }: CustomResourceDefinition): boolean {
  return metadata?.deletionTimestamp !== undefined && (metadata.finalizers ?? []).includes(CLEANUP_FINALIZER);
}

/** Resolves when all objects are deleted and the finalizer is removed. */
export async function finalizeDefinition(definition: CustomResourceDefinition, deps: FinalizerDeps): Promise<void> {
  const name = definition.metadata?.name ?? "";
  if (!isConditionTrue(definition, "Established")) {
    await deps.write(name, withoutFinalizer("NeverEstablished", "resource was never established"));
    return;
  }
  await deps.write(
    name,
    withCondition(terminating("InstanceDeletionInProgress", "CustomResource deletion is in progress")),
  );
  await deleteAll(definition, deps);
  await deps.write(name, withoutFinalizer("InstanceDeletionCompleted", "removed all instances"));
}

async function deleteAll(definition: CustomResourceDefinition, deps: FinalizerDeps): Promise<void> {
  const { registries, clock } = deps;
  const scope = { ...deps.scope, group: definition.spec.group };
  const { versions } = definition.spec;
  const stored = versions.find(({ storage }) => storage)?.name ?? versions[0]!.name;
  const converter = converterOf(definition, registries);
  const kind = createCustomKind(definition, stored, converter);
  const registry = registries.of(kind);
  try {
    for (let round = 1; ; round++) {
      if (converter !== undefined && (await deleteWithoutFinalizers(registry)) === 0) return;
      await deleteCollection(registry, scope, {}, {});
      const { items } = await list(registry, scope);
      if (items.length === 0) return;
      if (round === CHECK_ROUNDS) {
        const message = "could not confirm zero CustomResources remaining: timed out waiting for the condition";
        await deps.write(definition.metadata?.name ?? "", withCondition(terminating("InstanceDeletionCheck", message)));
      }
      await clock.sleep(RETRY_MS, scope.signal);
    }
  } finally {
    await registries.removeKind(kind);
  }
}

/** The converter of the definition's served kinds. */
function converterOf({ spec }: CustomResourceDefinition, { scheme }: Registries): Converter | undefined {
  const storageName = `${spec.group}/${spec.names.plural}`;
  return scheme.kinds().find((kind) => kind.storageName === storageName)?.converter;
}

/**
 * Deletes objects without finalizers directly in the store, without conversion: a definition is often deleted together
 * with its webhook. Resolves with the number of remaining objects.
 */
async function deleteWithoutFinalizers({ deps: { store }, objects }: Registry): Promise<number> {
  const { items } = await store.list(prefixRange(objects.prefix()));
  let remaining = 0;
  for (const { key, value, modified } of items) {
    const { metadata } = parseValue(value) as ApiObject;
    if ((metadata?.finalizers ?? []).length > 0) remaining++;
    // A concurrent change is handled by the next check.
    else await store.delete(key, modified).catch(() => remaining++);
  }
  return remaining;
}

function terminating(reason: string, message: string): Condition {
  return { type: "Terminating", status: "True", reason, message };
}

function withCondition(condition: Condition): DefinitionUpdate {
  return (definition, now) => setCondition(definition, condition, now);
}

function withoutFinalizer(reason: string, message: string): DefinitionUpdate {
  return (definition, now) => {
    const updated = setCondition(definition, { type: "Terminating", status: "False", reason, message }, now);
    const finalizers = (updated.metadata?.finalizers ?? []).filter((finalizer) => finalizer !== CLEANUP_FINALIZER);
    return { ...updated, metadata: { ...updated.metadata, finalizers } };
  };
}
