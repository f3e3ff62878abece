/** The attributes of admission requests, and functions over them that most plugins need. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import { type ErrorSubject, forbidden, type StatusError } from "../../api/status.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { ObjectSchema } from "../../schema/schema.ts";

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

/** Whether the request is for this resource, in any version. `subresource` is "" for the object itself. */
export function matchesResource<T extends ApiObject>(
  attributes: AdmissionAttributes,
  kind: Kind<T>,
  operations: readonly Operation[],
  subresource = "",
): boolean {
  const { plural, group } = attributes.kind;
  if (plural !== kind.plural || group !== kind.group || attributes.subresource !== subresource) return false;
  return operations.includes(attributes.operation);
}

export function metadataOf(object: ApiObject | undefined): ObjectMeta {
  return object?.metadata ?? {};
}

/** The object that errors name. An object that has only a generateName is named by that, as in Kubernetes. */
export function subjectOf({ kind, group, name, object }: AdmissionRequest): ErrorSubject {
  const { name: own, generateName } = metadataOf(object);
  return { group, resource: kind.plural, name: name || own || generateName || "Unknown" };
}

export function newForbidden(request: AdmissionRequest, reason: string): StatusError {
  return forbidden(subjectOf(request), reason);
}

/** A copy with another object. The members of a request are getters, so they are copied one by one. */
export function copyWithObject(request: AdmissionRequest, object: ApiObject): AdmissionRequest {
  const { operation, kind, group, subresource, objectKind, namespace, name, oldObject, options } = request;
  const { dryRun, user, reinvocation } = request;
  return {
    ...{ operation, kind, group, subresource, objectKind, namespace, name, oldObject, options },
    ...{ dryRun, user, reinvocation, object },
    // Reading it creates it.
    get signal() {
      return request.signal;
    },
    warn: (text) => request.warn(text),
    annotate: (key, value) => request.annotate(key, value),
  };
}
