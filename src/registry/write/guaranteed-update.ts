import type { ApiObject } from "../../api/kind.ts";
import { notFound } from "../../api/status.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import type { UpdateOutcome } from "../../storage/object-store.ts";
import { readLatest } from "../read/latest.ts";
import type { Registry } from "../registry.ts";
import { type Allocate, withAllocation } from "./allocation.ts";
import { metadataOf } from "./object-metadata.ts";
import type { WriteRequest } from "./request.ts";
import type { StoreStep } from "./store.ts";

/**
 * Returns the object to store in place of `previous`; called again when another write came between. An update that
 * runs the pipeline passes `store` on to it.
 */
export type UpdateFunction<T> = (previous: T, store: StoreStep<T>) => MaybePromise<T>;

/**
 * Reads, updates and writes one object, until no other write comes between; resolves with the object as stored. Writes
 * nothing when the update changes nothing. Deletes a terminating object whose last finalizer or grace period the update
 * removes, and resolves with its last state.
 */
export function guaranteedUpdate<T extends ApiObject>(request: WriteRequest<T>, update: UpdateFunction<T>): Promise<T> {
  return withAllocation(request, (allocate) => readAndUpdate(request, update, allocate));
}

async function readAndUpdate<T extends ApiObject>(
  { registry, scope, name, options }: WriteRequest<T>,
  update: UpdateFunction<T>,
  allocate: Allocate<T>,
): Promise<T> {
  const key = registry.key(scope, name);
  const subject = registry.subject(scope, name);
  const { preconditions } = options;
  const store: StoreStep<T> = (_, prepare) => prepare(allocate);
  const cached = await readLatest(registry, scope, key);
  if (options.dryRun === true) {
    if (cached === undefined) throw notFound(subject);
    // Kubernetes' dry run names the key without the prefix of the store.
    const shownKey = key.slice(registry.deps.prefix.length);
    registry.objects.checkPreconditions(shownKey, cached.object, { preconditions, subject });
    return await registry.objects.roundTrip(await update(cached.object, store));
  }
  const mutate = async (previous: T): Promise<UpdateOutcome<T>> => {
    const next = await update(previous, store);
    return isFinalized(registry, next, previous) ? { delete: next } : { store: next };
  };
  const ttlSeconds = (object: T): number | undefined => registry.ttlSeconds(object);
  const outcome = await registry.objects.updateOrDelete(key, mutate, { preconditions, subject, cached, ttlSeconds });
  if ("store" in outcome) return outcome.store;
  await registry.allocator?.release(scope, outcome.delete);
  return outcome.delete;
}

/** Whether the update removes what the deletion of the object waited for. */
function isFinalized<T extends ApiObject>(registry: Registry<T>, next: T, previous: T): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = metadataOf(next);
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds !== 0 || finalizers.length > 0) return false;
  if (registry.kind.strategy.hasSpecFinalizers?.(next) === true) return false;
  return metadataOf(previous).deletionTimestamp !== undefined;
}
