/** The interface of admission plugins. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import type { AdmissionAttributes, AdmissionRequest } from "./attributes.ts";

/** A plugin mutates objects, validates them, or both. All plugins mutate before the first one validates. */
export interface AdmissionPlugin {
  readonly name: string;
  /** Whether the plugin handles such requests. The result is cached, so it must not change. */
  handles(attributes: AdmissionAttributes): boolean;
  /** Returns the mutated object; undefined if it is unchanged. Throws a `StatusError` to reject the request. */
  mutate?(request: AdmissionRequest): MaybePromise<ApiObject | undefined>;
  /** Validates the object that will be stored. Throws a `StatusError` to reject the request. */
  validate?(request: AdmissionRequest): MaybePromise<void>;
}

/** A signal, or a request that has one: a request creates its signal only when a reader has to wait. */
export type SignalSource = AbortSignal | Pick<AdmissionRequest, "signal">;

/** Reads from the watch caches, which are as fresh as the last acknowledged write. */
export interface ObjectReader {
  get<T extends ApiObject>(
    kind: Kind<T>,
    namespace: string,
    name: string,
    signal: SignalSource,
  ): MaybePromise<T | undefined>;
  list<T extends ApiObject>(kind: Kind<T>, namespace: string, signal: SignalSource): MaybePromise<readonly T[]>;
  /** Number of changes of the kind's objects so far: what is derived from all of them is valid while it is the same. */
  changes<T extends ApiObject>(kind: Kind<T>, signal: SignalSource): MaybePromise<number>;
  /** Returns what the cache has now, which may be stale. Undefined also while the cache is being filled. */
  peek<T extends ApiObject>(kind: Kind<T>, namespace: string, name: string): T | undefined;
}

/** Writes objects in the server's name. Admission does not apply. Throws a `StatusError`. */
export interface ObjectWriter {
  create<T extends ApiObject>(kind: Kind<T>, namespace: string, object: T, signal: AbortSignal): Promise<T>;
  /** Updates the object. `apply` is called again after a conflict. `subresource`: `status`, or "" for the object. */
  update<T extends ApiObject>(
    kind: Kind<T>,
    target: { readonly namespace: string; readonly name: string; readonly subresource: string },
    apply: (previous: T) => T,
    signal: AbortSignal,
  ): Promise<T>;
}
