/** What plugins ask of a place, and how they refuse. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import { forbidden, type StatusError, type Subject } from "../../api/status.ts";
import type { AdmissionRequest, Operation, Place } from "./plugin.ts";

/** Whether it is about objects of the kind, in any version; `subresource` is "" for the objects themselves. */
export function isAt<T extends ApiObject>(
  place: Place,
  kind: Kind<T>,
  operations: readonly Operation[],
  subresource = "",
): boolean {
  const { plural, group } = place.kind;
  if (plural !== kind.plural || group !== kind.group || place.subresource !== subresource) return false;
  return operations.includes(place.operation);
}

export function metadataOf(object: ApiObject | undefined): ObjectMeta {
  return object?.metadata ?? {};
}

/** What errors name. An object whose name the server is to choose is named by what it begins with. */
export function subjectOf({ kind, group, name, object }: AdmissionRequest): Subject {
  const { name: own, generateName } = metadataOf(object);
  return { group, resource: kind.plural, name: name || own || generateName || "Unknown!" };
}

export function refusal(request: AdmissionRequest, why: string): StatusError {
  return forbidden(subjectOf(request), why);
}
