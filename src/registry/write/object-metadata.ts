import type { ApiObject } from "../../api/kind.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";

export function metadataOf(object: ApiObject): ObjectMeta {
  return object.metadata ?? {};
}

export function withMetadata<T extends ApiObject>(object: T, metadata: ObjectMeta): T {
  return { ...object, metadata };
}
