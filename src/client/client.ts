/** A client of an API server: typed verbs over a `Transport`, which is any `Handler`: over the network or in memory. */
import type { ApiObject, Kind } from "../api/kind.ts";
import type { Handler } from "../http/message.ts";

export type Transport = Handler;

export interface ObjectName {
  readonly name: string;
  readonly namespace?: string | undefined;
}

export interface ListResult<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
  readonly continue?: string | undefined;
}

export interface ListQuery {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface WatchQuery extends ListQuery {
  readonly allowWatchBookmarks?: boolean | undefined;
  readonly timeoutSeconds?: number | undefined;
  /** The watch begins with the present objects, and a bookmark after them. */
  readonly sendInitialEvents?: boolean | undefined;
  readonly resourceVersionMatch?: "NotOlderThan" | undefined;
}

export type ClientWatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | {
      readonly type: "BOOKMARK";
      readonly resourceVersion: string;
      /** All objects that were present at the start of the watch have been sent. */
      readonly initialEventsEnd?: boolean | undefined;
    };

export type PatchType = "json" | "merge" | "strategic" | "apply";

export interface DeleteQuery {
  readonly gracePeriodSeconds?: number | undefined;
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };
  readonly propagationPolicy?: "Orphan" | "Background" | "Foreground" | undefined;
}

/** An entry of an APIResourceList. */
export interface ListedResource {
  /** `pods`, `pods/status` */
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

/** Calls reject with a `StatusError` for a response that is not 2xx, and with the error of the transport. */
export interface Client {
  /** Informers get their first objects with their watch, where the server supports it, instead of a list. */
  readonly streamsLists?: boolean | undefined;
  get<T extends ApiObject>(kind: Kind<T>, name: ObjectName, signal?: AbortSignal): Promise<T>;
  list<T extends ApiObject>(kind: Kind<T>, query?: ListQuery, signal?: AbortSignal): Promise<ListResult<T>>;
  create<T extends ApiObject>(kind: Kind<T>, object: T, signal?: AbortSignal): Promise<T>;
  update<T extends ApiObject>(kind: Kind<T>, object: T, signal?: AbortSignal): Promise<T>;
  updateStatus<T extends ApiObject>(kind: Kind<T>, object: T, signal?: AbortSignal): Promise<T>;
  /** PUT to a subresource of the object's kind (`finalize`, `resize`). */
  updateSubresource<T extends ApiObject>(
    kind: Kind<T>,
    object: T,
    subresource: string,
    signal?: AbortSignal,
  ): Promise<T>;
  /** GET of a subresource that is of another kind (`scale`). */
  getSubresource<T extends ApiObject>(
    kind: Kind,
    name: ObjectName,
    subresource: string,
    result: Kind<T>,
    options?: {
      readonly query?: Readonly<Record<string, string | undefined>>;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<T>;
  /** PUT to a subresource that is of another kind; the metadata of `object` names the parent. */
  replaceSubresource<T extends ApiObject>(
    kind: Kind,
    subresource: string,
    object: T,
    result: Kind<T>,
    signal?: AbortSignal,
  ): Promise<T>;
  patch<T extends ApiObject>(
    kind: Kind<T>,
    name: ObjectName,
    type: PatchType,
    patch: unknown,
    options?: {
      readonly subresource?: string;
      /** For server-side apply. */
      readonly query?: { readonly fieldManager: string; readonly force?: boolean };
      readonly signal?: AbortSignal;
    },
  ): Promise<T>;
  delete<T extends ApiObject>(
    kind: Kind<T>,
    name: ObjectName,
    query?: DeleteQuery,
    signal?: AbortSignal,
  ): Promise<void>;
  /** Deletes all objects that the query selects. */
  deleteCollection(kind: Kind, query: ListQuery, signal?: AbortSignal): Promise<void>;
  /** POST to a subresource (`binding`, `eviction`, `token`); resolves with the decoded response. */
  createSubresource(
    kind: Kind,
    name: ObjectName,
    subresource: string,
    body: unknown,
    signal?: AbortSignal,
  ): Promise<unknown>;
  /** Throws a `StatusError` with code 410 when `resourceVersion` is too old. */
  /** The resources of a group version, as discovery lists them; absent in clients that only know their kinds. */
  listResources?(groupVersion: string, signal?: AbortSignal): Promise<readonly ListedResource[]>;

  watch<T extends ApiObject>(kind: Kind<T>, query: WatchQuery, signal: AbortSignal): AsyncIterable<ClientWatchEvent<T>>;
}
