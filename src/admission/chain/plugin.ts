/** The last word before storage: what a plugin is asked, and what it may answer. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import type { Soon } from "../../std/async/maybe-promise.ts";

export type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

/** What is known of requests before there is one: by this it is decided, once, which plugins are asked. */
export interface Place {
  readonly operation: Operation;
  /** The kind that the path names, in the version of the path. */
  readonly kind: Kind;
  /** Its group as the path spelled it; errors and webhooks use the same spelling. */
  readonly group: string;
  /** Empty for the object itself. */
  readonly subresource: string;
  /** What the objects are: another kind than the path's for `pods/binding` and its like. */
  readonly objectKind: ObjectKind;
}

export interface ObjectKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schema: ObjectSchema;
}

/** One request about one object, as plugins see it. */
export interface AdmissionRequest extends Place {
  /** Empty for kinds that are cluster-wide. Of a namespace, its own name. */
  readonly namespace: string;
  /** Empty while the server is to choose it, and where all objects of a collection are deleted. */
  readonly name: string;
  /** What is to be written, defaults filled in, or the options of a CONNECT. Undefined for DELETE. */
  readonly object: ApiObject | undefined;
  /** What is there, for UPDATE and DELETE. */
  readonly previous: ApiObject | undefined;
  /** `CreateOptions`, `UpdateOptions` (of patches too) or `DeleteOptions`; undefined for CONNECT. */
  readonly options: ApiObject | undefined;
  /** Nothing will be written: whoever has effects of their own must not have them. */
  readonly dryRun: boolean;
  readonly user: UserInfo;
  readonly signal: AbortSignal;
  readonly reinvocation: Reinvocation;
  /** Hears what the client is told beside the answer. */
  warn(text: string): void;
  /** Hears what the audit log is to keep. Keys are qualified: `pod-security.kubernetes.io/enforce-policy`. */
  annotate(key: string, value: string): void;
}

/** All plugins may be asked a second time to change an object, where one of them has reason to want it. */
export interface Reinvocation {
  /** Whether this is that second time. */
  readonly again: boolean;
  /** Wants it. Does nothing the second time. */
  request(): void;
  /** What plugins keep from the first time, by their names. */
  readonly memory: Map<string, unknown>;
}

/** A plugin changes objects, checks them, or both: all change them before the first one checks. */
export interface AdmissionPlugin {
  readonly name: string;
  /** Whether it has a say in such requests at all. Must always answer the same: it is asked once. */
  handles(place: Place): boolean;
  /** The object to go on with; undefined: as it is. Throws a `StatusError` to forbid. */
  mutate?(request: AdmissionRequest): Soon<ApiObject | undefined>;
  /** Throws a `StatusError` to forbid. Sees the object as it would be written. */
  validate?(request: AdmissionRequest): Soon<void>;
}

/** Who waits: a request's signal is only made where there is something to wait for. */
export type Waiting = AbortSignal | Pick<AdmissionRequest, "signal">;

/** What plugins read of the cluster: caches, as fresh as the last acknowledged write. */
export interface Lookup {
  get<T extends ApiObject>(kind: Kind<T>, namespace: string, name: string, waiting: Waiting): Soon<T | undefined>;
  list<T extends ApiObject>(kind: Kind<T>, namespace: string, waiting: Waiting): Soon<readonly T[]>;
  /** What the cache shows at this moment, which may be an instant behind; undefined also while it is being filled. */
  seen<T extends ApiObject>(kind: Kind<T>, namespace: string, name: string): T | undefined;
}

/** What plugins change of the cluster on their own account. No plugin is asked about it. Throws a `StatusError`. */
export interface Effects {
  create<T extends ApiObject>(kind: Kind<T>, namespace: string, object: T, signal: AbortSignal): Promise<T>;
  /** `next` may be called again when another write came between. `subresource`: `status`, or "" for the object. */
  change<T extends ApiObject>(
    kind: Kind<T>,
    at: { readonly namespace: string; readonly name: string; readonly subresource: string },
    next: (previous: T) => T,
    signal: AbortSignal,
  ): Promise<T>;
}
