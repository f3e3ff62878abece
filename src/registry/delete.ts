import type { ApiObject } from "../api/kind.ts";
import { conflict, forbidden, isNotFound, notFound } from "../api/status.ts";
import { formatTime } from "../schema/value/time.ts";
import { get } from "./get.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import { runDeleteAdmission } from "./write/admission.ts";
import { metadataOf, withMetadata } from "./write/object-metadata.ts";
import type { WriteOptions } from "./write/request.ts";

export type PropagationPolicy = "Background" | "Foreground" | "Orphan";

export interface DeleteOptions extends WriteOptions {
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagationPolicy?: PropagationPolicy | undefined;
  /** The deprecated field, as sent; `propagationPolicy` already reflects it. */
  readonly orphanDependents?: boolean | undefined;
  /** The object is deleted although it cannot be read; only set with the gate AllowUnsafeMalformedObjectDeletion. */
  readonly ignoresReadError?: boolean | undefined;
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };
}

export interface DeleteResult<T> {
  readonly object: T;
  /** False while the deletion waits for the grace period or finalizers. */
  readonly deleted: boolean;
}

const ORPHAN = "orphan";
const FOREGROUND = "foregroundDeletion";

/** Deletes the object, or marks it as terminating while it has a grace period or finalizers. */
export async function remove<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  options: DeleteOptions = {},
): Promise<DeleteResult<T>> {
  const { object } = await get(registry, scope, name);
  const refused = registry.kind.strategy.validateDelete?.(object);
  if (refused !== undefined) throw forbidden(registry.subject(scope, name), refused);
  return await removeExisting(registry, scope, object, options);
}

/** As `remove`, for an object that has been read. */
export async function removeExisting<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  found: T,
  options: DeleteOptions,
): Promise<DeleteResult<T>> {
  const name = metadataOf(found).name ?? "";
  const key = registry.key(scope, name);
  const subject = registry.subject(scope, name);
  let stored: T | undefined;
  for (let current = found; ; ) {
    checkPreconditions(registry, scope, current, options);
    const step = planDeletion(registry, current, options);
    if (!step.deleted && step.object === current) return step;
    await runDeleteAdmission(current, options);
    if (options.dryRun === true) return step;
    try {
      // Watchers receive the terminating object before its deletion.
      const marked =
        step.object === current
          ? current
          : await registry.objects.guaranteedUpdate(key, throwIfModified(current, step.object), { subject });
      if (!step.deleted) return { object: marked, deleted: false };
      if (marked !== current) stored = marked;
      const last = await registry.objects.delete(key, { subject, check: throwIfModified(marked, undefined) });
      await registry.allocator?.release(scope, last);
      return { object: last, deleted: true };
    } catch (error) {
      const next = error instanceof ObjectModified ? await registry.objects.get(key) : undefined;
      if (next !== undefined) current = next;
      // The agent may delete a pod as soon as it is terminating.
      else if (stored !== undefined && isMissing(error)) return { object: stored, deleted: true };
      else throw error instanceof ObjectModified ? notFound(subject) : error;
    }
  }
}

/** Another write came between: the deletion is planned again. */
class ObjectModified extends Error {}

function isMissing(error: unknown): boolean {
  return error instanceof ObjectModified || isNotFound(error);
}

function throwIfModified<T extends ApiObject, R>(seen: T, result: R): (current: T) => R {
  return (current) => {
    if (metadataOf(current).resourceVersion !== metadataOf(seen).resourceVersion) throw new ObjectModified();
    return result;
  };
}

interface Deletion<T> {
  readonly object: T;
  readonly deleted: boolean;
}

/** What one delete request does to the object: stores it as terminating, or deletes it. */
function planDeletion<T extends ApiObject>(registry: Registry<T>, object: T, options: DeleteOptions): Deletion<T> {
  const { prepareForDelete: markDeleted } = registry.kind.strategy;
  if (markDeleted !== undefined && metadataOf(object).deletionTimestamp === undefined) {
    return { object: markDeleted(object, registry.timestamp()), deleted: false };
  }
  const marked = setGracePeriod(registry, object, options);
  const metadata = metadataOf(marked);
  const finalizers = deletionFinalizers(registry, metadata.finalizers ?? [], options.propagationPolicy);
  const changed =
    finalizers.length !== (metadata.finalizers ?? []).length ||
    !finalizers.every((f, i) => f === metadata.finalizers?.[i]);
  const hasFinalizers = finalizers.length > 0 || hasSpecFinalizers(registry, object);
  const grace = metadata.deletionGracePeriodSeconds ?? 0;
  if (!hasFinalizers) return { object: marked, deleted: metadata.deletionTimestamp === undefined || grace === 0 };
  const terminating = {
    ...metadata,
    ...(finalizers.length === 0 ? {} : { finalizers }),
    // The deletion changes the desired state.
    ...(metadata.deletionTimestamp === undefined && metadata.generation ? { generation: metadata.generation + 1 } : {}),
    deletionTimestamp: metadata.deletionTimestamp ?? registry.timestamp(),
    ...(omitsGracePeriod(registry, object) && metadata.deletionGracePeriodSeconds === undefined
      ? {}
      : { deletionGracePeriodSeconds: grace }),
  };
  const unchanged =
    !changed &&
    metadata.deletionTimestamp !== undefined &&
    metadata.deletionTimestamp === metadataOf(object).deletionTimestamp &&
    terminating.deletionGracePeriodSeconds === metadataOf(object).deletionGracePeriodSeconds;
  return { object: unchanged ? object : withMetadata(marked, terminating), deleted: false };
}

function hasSpecFinalizers<T extends ApiObject>({ kind }: Registry<T>, object: T): boolean {
  return kind.strategy.hasSpecFinalizers?.(object) === true;
}

/** Whether the terminating object has no deletionGracePeriodSeconds. */
function omitsGracePeriod<T extends ApiObject>(registry: Registry<T>, object: T): boolean {
  return hasSpecFinalizers(registry, object) || registry.kind.strategy.prepareForDelete !== undefined;
}

/** Sets the end of the grace period, for kinds that have one; a later request can only shorten it. */
function setGracePeriod<T extends ApiObject>(registry: Registry<T>, object: T, options: DeleteOptions): T {
  const { strategy } = registry.kind;
  const metadata = metadataOf(object);
  const requested = options.gracePeriodSeconds;
  const present = metadata.deletionGracePeriodSeconds;
  if (metadata.deletionTimestamp !== undefined) {
    if (present === undefined || requested === undefined || requested >= present) return object;
    const shorterMs = (present - requested) * 1000;
    return withMetadata(object, {
      ...metadata,
      deletionTimestamp: formatTime(Date.parse(metadata.deletionTimestamp) - shorterMs),
      deletionGracePeriodSeconds: Math.max(0, requested),
    });
  }
  const grace = strategy.gracePeriodSeconds?.(object, requested);
  if (grace === undefined) return object;
  return withMetadata(object, {
    ...metadata,
    ...(metadata.generation ? { generation: metadata.generation + 1 } : {}),
    deletionTimestamp: registry.timestamp(grace * 1000),
    deletionGracePeriodSeconds: grace,
  });
}

/** Adds the finalizer that makes the garbage collector orphan the dependents, or delete them first. */
function deletionFinalizers<T extends ApiObject>(
  registry: Registry<T>,
  finalizers: readonly string[],
  policy: PropagationPolicy | undefined,
): readonly string[] {
  if (registry.deps.garbageCollector !== true) return finalizers;
  const others = finalizers.filter((finalizer) => finalizer !== ORPHAN && finalizer !== FOREGROUND);
  // A finalizer of the object takes precedence over the kind's default.
  const orphans = registry.kind.strategy.orphansDependentsByDefault === true && others.length === finalizers.length;
  switch (policy ?? (orphans ? "Orphan" : undefined)) {
    case undefined:
      return finalizers;
    case "Background":
      return others;
    case "Orphan":
      return [...others, ORPHAN];
    case "Foreground":
      return [...others, FOREGROUND];
    default:
      throw new Error(`Unknown propagation policy ${policy}`);
  }
}

function checkPreconditions<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  object: T,
  { preconditions }: DeleteOptions,
): void {
  const { name = "", uid, resourceVersion } = metadataOf(object);
  const subject = registry.kindSubject(scope, name);
  if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
    const why = `the UID in the precondition (${preconditions.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`;
    throw conflict(subject, why);
  }
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersion) {
    const why = `the ResourceVersion in the precondition (${preconditions.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`;
    throw conflict(subject, why);
  }
}
