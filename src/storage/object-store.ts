import type { ApiObject, Kind } from "../api/kind.ts";
import type { Subject } from "../api/status.ts";
import type { KeyValue, Revision, Store } from "./store.ts";

export type StorageMediaType = "application/json" | "application/vnd.svc.protobuf";

export interface ObjectStoreOptions<T extends ApiObject> {
  readonly store: Store;
  readonly kind: Kind<T>;
  /** `/registry`: all keys of the cluster lie below it (`--kvstore-prefix`). */
  readonly prefix: string;
  /** What new values are written as; both are always read. `application/vnd.svc.protobuf` when absent. */
  readonly mediaType?: StorageMediaType | undefined;
}

export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface ObjectWriteOptions {
  readonly ttlSeconds?: number | undefined;
  /** What errors name, in the spelling the client asked in; the kind's own group and the key's name when absent. */
  readonly subject?: Subject | undefined;
}

export interface ObjectUpdateOptions extends ObjectWriteOptions {
  readonly preconditions?: Preconditions | undefined;
}

export interface ObjectPage<T> {
  readonly items: readonly T[];
  readonly revision: Revision;
  readonly remaining: number;
}

export declare class ObjectStore<T extends ApiObject> {
  readonly kind: Kind<T>;
  constructor(options: ObjectStoreOptions<T>);
  /** `/registry/pods/default/web`. Throws a `StatusError` 400 for a namespace or name that is no path segment. */
  key(namespace: string | undefined, name: string): string;
  /** `/registry/pods/` or, with a namespace, `/registry/pods/default/`. */
  prefix(namespace?: string): string;
  /** Resolves with the object as stored, resourceVersion set. Throws 409 AlreadyExists. */
  create(key: string, object: T, options?: ObjectWriteOptions): Promise<T>;
  get(key: string): Promise<T | undefined>;
  /**
   * Reads, lets `mutate` make the next object (it may throw; it may be called again), writes; tries again when another
   * write came between. Nothing is written when the bytes would be the same. Throws 404, or 409 for preconditions.
   */
  guaranteedUpdate(key: string, mutate: (current: T) => T | Promise<T>, options?: ObjectUpdateOptions): Promise<T>;
  /** Resolves with the object's last state, resourceVersion being the deletion's. Throws 404, or 409 for preconditions. `check` may throw to forbid it. */
  delete(key: string, options?: ObjectUpdateOptions & { readonly check?: (current: T) => void }): Promise<T>;
  list(
    prefix: string,
    options?: { readonly limit?: number; readonly after?: string; readonly revision?: Revision },
  ): Promise<ObjectPage<T>>;
  /** Resolves with frozen objects, metadata.resourceVersion set. */
  decode(item: KeyValue): T;
}
