/** A guarded read-modify-write of one object, whatever verb asked for it. */
import type { ApiObject } from "../../api/kind.ts";
import { notFound } from "../../api/status.ts";
import type { Preconditions } from "../../storage/object-store.ts";
import { type Allocate, withAllocation } from "./allocation.ts";
import type { Registry, Scope, WriteOptions } from "../registry.ts";
import { metadataOf } from "./prepare.ts";

export interface ChangeOptions extends WriteOptions {
  readonly preconditions?: Preconditions | undefined;
}

/** The object has nothing left to wait for: it goes instead of being written. */
class Leaving<T> extends Error {
  readonly object: T;
  constructor(object: T) {
    super("the object is leaving");
    this.object = object;
  }
}

/** The object that an attempt wants written; `allocate` is there for kinds whose objects hold what no two may have. */
export type UpdateFunction<T extends ApiObject> = (previous: T, allocate: Allocate<T> | undefined) => T | Promise<T>;

/**
 * Resolves with the object as written. `next` may be called again when another write came between. An object under
 * deletion that loses its last finalizer, or whose grace ends, is removed.
 */
export async function guaranteedUpdate<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  next: UpdateFunction<T>,
  options: ChangeOptions = {},
): Promise<T> {
  const holding = { allocator: registry.allocator, scope, dryRun: options.dryRun === true };
  return await withAllocation(holding, async (allocate) => await attempt(registry, scope, name, next, allocate, options));
}

async function attempt<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  next: UpdateFunction<T>,
  allocate: Allocate<T> | undefined,
  options: ChangeOptions,
): Promise<T> {
  const key = registry.key(scope, name);
  const subject = registry.subject(scope, name);
  const cached = await registry.peek(scope, key);
  if (options.dryRun === true) {
    if (cached === undefined) throw notFound(subject);
    registry.objects.checkPreconditions(key, cached.object, { ...options, subject });
    return await registry.objects.asWritten(await next(cached.object, allocate));
  }
  const mutate = async (previous: T): Promise<T> => {
    const object = await next(previous, allocate);
    if (isFinalized(object, previous)) throw new Leaving(object);
    return object;
  };
  for (;;) {
    try {
      const ttlSeconds = (object: T): number | undefined => registry.ttlSeconds(object);
      return await registry.objects.guaranteedUpdate(key, mutate, { ...options, subject, cached, ttlSeconds });
    } catch (error) {
      if (!(error instanceof Leaving)) throw error;
      const gone = await leave(registry, key, error.object as T, subject);
      if (gone === undefined) continue;
      await registry.allocator?.release(scope, gone);
      return gone;
    }
  }
}

/** Undefined when another write came between. */
async function leave<T extends ApiObject>(
  registry: Registry<T>,
  key: string,
  object: T,
  subject: ReturnType<Registry<T>["subject"]>,
): Promise<T | undefined> {
  const { uid, resourceVersion } = metadataOf(object);
  try {
    await registry.objects.delete(key, { subject, preconditions: { uid, resourceVersion } });
    return object;
  } catch (error) {
    const current = await registry.objects.get(key);
    if (current === undefined) throw notFound(subject);
    if (metadataOf(current).resourceVersion === resourceVersion) throw error;
    return undefined;
  }
}

/** Whether an update was the last thing a deletion waited for. */
function isFinalized(next: ApiObject, previous: ApiObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = metadataOf(next);
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds !== 0 || finalizers.length > 0) return false;
  if (waitsForNamespace(next)) return false;
  return metadataOf(previous).deletionTimestamp !== undefined;
}

/** Namespaces have finalizers of their own in `spec`, for what is in them. */
export function waitsForNamespace(object: ApiObject): boolean {
  const { spec } = object as { readonly spec?: { readonly finalizers?: readonly unknown[] } };
  return Array.isArray(spec?.finalizers) && spec.finalizers.length > 0;
}
