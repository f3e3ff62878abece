/** Requests for the metadata of objects alone, as PartialObjectMetadata. */
import type { ApiObject, Kind } from "../api/kind.ts";
import { objectMeta } from "../api/meta/object-meta.ts";
import { typeMeta } from "../api/meta/type-meta.ts";
import { object, optional } from "../schema/define.ts";

const partialObjectMetadata = object("meta/v1.PartialObjectMetadata", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
});

/** The kind for a client that reads, patches and deletes metadata; it cannot create or update objects. */
export function metadataOnly(kind: Kind): Kind {
  return isMetadataOnly(kind) ? kind : bareMetadataKind(kind);
}

/** The same for a kind without a schema. */
export function bareMetadataKind(kind: Omit<Kind, "schema">): Kind {
  return { ...kind, schema: partialObjectMetadata };
}

export function isMetadataOnly(kind: Pick<Kind, "schema">): boolean {
  return kind.schema === partialObjectMetadata;
}

/** The value of the header `accept` for requests of the kind. */
export function acceptHeader(kind: Kind<ApiObject>, shape: "object" | "list", acceptsCbor = false): string {
  const parameters = isMetadataOnly(kind as Pick<Kind, "schema">) ? metadataParameters(shape) : "";
  const json = `application/json${parameters}`;
  return acceptsCbor ? `application/cbor${parameters},${json};q=0.9` : json;
}

function metadataParameters(shape: "object" | "list"): string {
  const type = shape === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  return `;as=${type};g=meta.k8s.io;v=v1`;
}
