import type { ApiObject } from "../../api/kind.ts";
import { badRequest } from "../../api/status.ts";
import { metadataOf, withMetadata } from "./object-metadata.ts";
import type { WriteRequest } from "./request.ts";

/** Checks the object's name against the path. Throws a 400 when they differ. */
export function checkName<T extends ApiObject>(object: T, name: string): T {
  const metadata = metadataOf(object);
  if (metadata.name === name) return object;
  if (!metadata.name) {
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  }
  throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
}

/** Sets the namespace of the request; removes it for a cluster-scoped kind. Throws a 400 when the two differ. */
export function setNamespace<T extends ApiObject>(
  { registry, scope }: Pick<WriteRequest<T>, "registry" | "scope">,
  object: T,
): T {
  const metadata = metadataOf(object);
  const requested = registry.kind.namespaced ? scope.namespace : "";
  const namespace = metadata.namespace ?? "";
  if (namespace === requested) return object;
  if (requested === "") {
    const { namespace: _, ...rest } = metadata;
    return withMetadata(object, rest);
  }
  if (namespace !== "") {
    throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`);
  }
  return withMetadata(object, { ...metadata, namespace: requested });
}
