/** Objects of which only the metadata is asked for: servers leave the rest out of what they send. */
import type { ApiObject, Kind } from "../api/kind.ts";
import { objectMeta } from "../api/meta/object-meta.ts";
import { typeMeta } from "../api/meta/type-meta.ts";
import { object, optional } from "../schema/define.ts";

const partialObjectMetadata = object("meta/v1.PartialObjectMetadata", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
});

/** The kind for a client that reads, patches and deletes by metadata alone; there is nothing to create or update. */
export function metadataOnly(kind: Kind): Kind {
  return isMetadataOnly(kind) ? kind : bareMetadataKind(kind);
}

/** The same of a kind whose schema nobody here knows. */
export function bareMetadataKind(kind: Omit<Kind, "schema">): Kind {
  return { ...kind, schema: partialObjectMetadata };
}

export function isMetadataOnly(kind: Pick<Kind, "schema">): boolean {
  return kind.schema === partialObjectMetadata;
}

/** What a client of the kind accepts as an answer. */
export function acceptOf(kind: Kind<ApiObject>, shape: "object" | "list"): string {
  if (!isMetadataOnly(kind as Pick<Kind, "schema">)) return "application/json";
  const form = shape === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  return `application/json;as=${form};g=meta.k8s.io;v=v1`;
}
