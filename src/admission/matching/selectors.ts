/** The namespace and object selectors of webhooks and policies. */
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { ApiObject } from "../../api/kind.ts";
import { matchesLabels, type Requirement } from "../../api/meta/selectors/selector.ts";
import { notFound, type StatusError } from "../../api/status.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import { type AdmissionRequest, metadataOf } from "../chain/attributes.ts";
import type { ObjectReader } from "../chain/plugin.ts";

/** Whether the new or the old object has the labels. */
export function matchesObjects(selector: readonly Requirement[], { object, oldObject }: AdmissionRequest): boolean {
  if (selector.length === 0) return true;
  const matches = (one: ApiObject | undefined): boolean =>
    one?.metadata !== undefined && matchesLabels(selector, one.metadata.labels);
  return matches(object) || matches(oldObject);
}

/** Whether the namespace of the request has the labels. Throws or rejects with a 404 if it does not exist. */
export function matchesNamespace(
  selector: readonly Requirement[],
  request: AdmissionRequest,
  reader: ObjectReader,
): MaybePromise<boolean> {
  const { namespace, kind, subresource, operation, object } = request;
  const isNamespace = kind.group === "" && kind.plural === "namespaces";
  if (selector.length === 0 || (namespace === "" && !isNamespace)) return true;
  if (isNamespace && subresource === "" && (operation === "CREATE" || operation === "UPDATE")) {
    return matchesLabels(selector, metadataOf(object).labels);
  }
  return andThen(reader.get(namespaceKind, "", namespace, request), (found) => {
    if (found === undefined) throw namespaceNotFound(namespace);
    return matchesLabels(selector, found.metadata?.labels);
  });
}

export function namespaceNotFound(name: string): StatusError {
  return notFound({ group: "", resource: "namespaces", name });
}
