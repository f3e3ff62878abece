/** Functions over admission attributes that most plugins need, and the error by which a plugin rejects a request. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import { type ErrorSubject, forbidden, type StatusError } from "../../api/status.ts";
import type { AdmissionAttributes, AdmissionRequest, Operation } from "./plugin.ts";

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
  return { group, resource: kind.plural, name: name || own || generateName || "Unknown!" };
}

export function newForbidden(request: AdmissionRequest, reason: string): StatusError {
  return forbidden(subjectOf(request), reason);
}
