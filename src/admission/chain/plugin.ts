/** The interface of admission plugins. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";

export type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

/**
 * What is the same for all requests of an endpoint. A plugin decides by it, once, whether it handles these requests.
 */
export interface AdmissionAttributes {
  readonly operation: Operation;
  /** The kind of the resource in the path, in the version of the path. */
  readonly kind: Kind;
  /** The group as the alias that the path uses; errors and webhooks use the same one. */
  readonly group: string;
  /** Empty for the object itself. */
  readonly subresource: string;
  /** The kind of the objects: `Binding` for `pods/binding`. */
  readonly objectKind: ObjectKind;
}

export interface ObjectKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schema: ObjectSchema;
}

/** One request for one object. */
export interface AdmissionRequest extends AdmissionAttributes {
  /** Empty for cluster-scoped resources. For a namespace, its own name. */
  readonly namespace: string;
  /** Empty before generateName is resolved, and for deletecollection. */
  readonly name: string;
  /** The object to write, with defaults, or the options of a CONNECT. Undefined for DELETE. */
  readonly object: ApiObject | undefined;
  /** The existing object, for UPDATE and DELETE. */
  readonly oldObject: ApiObject | undefined;
  /** `CreateOptions`, `UpdateOptions` (of patches too) or `DeleteOptions`; undefined for CONNECT. */
  readonly options: ApiObject | undefined;
  /** With a dry run, nothing is stored and a plugin must not have side writer. */
  readonly dryRun: boolean;
  readonly user: UserInfo;
  readonly signal: AbortSignal;
  readonly reinvocation: ReinvocationContext;
  /** Adds a warning header to the response. */
  warn(text: string): void;
  /** Adds an annotation to the audit event. Keys are qualified: `pod-security.kubernetes.io/enforce-policy`. */
  annotate(key: string, value: string): void;
}

/** Mutating plugins run a second time when one of them requests it. */
export interface ReinvocationContext {
  /** Whether this is the second run. */
  readonly isReinvocation: boolean;
  /** Requests the second run. Has no effect during the second run. */
  request(): void;
  /** State that plugins keep for the second run, by plugin name. */
  readonly pluginState: Map<string, unknown>;
}

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
  /** Returns what the cache has now, which may be stale. Undefined also while the cache is being filled. */
  peek<T extends ApiObject>(kind: Kind<T>, namespace: string, name: string): T | undefined;
}

/** Writes objects in the server's name. Admission does not apply. Throws a `StatusError`. */
export interface ObjectWriter {
  create<T extends ApiObject>(kind: Kind<T>, namespace: string, object: T, signal: AbortSignal): Promise<T>;
  /** Updates the object. `update` is called again after a conflict. `subresource`: `status`, or "" for the object. */
  update<T extends ApiObject>(
    kind: Kind<T>,
    target: { readonly namespace: string; readonly name: string; readonly subresource: string },
    apply: (previous: T) => T,
    signal: AbortSignal,
  ): Promise<T>;
}
