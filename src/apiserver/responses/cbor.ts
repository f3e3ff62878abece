/** Encodes objects, lists and watch events in CBOR, with binary data as byte strings. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { listMeta } from "../../api/meta/list-meta.ts";
import { encodeCbor, encodeCborValue } from "../../schema/cbor/encode.ts";
import { list, object, optional, required, string } from "../../schema/define.ts";
import { parseExact } from "../../schema/json/exact-numbers.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import type { TypeMeta } from "./type-meta.ts";

interface CborSchemas {
  readonly list: ObjectSchema;
  readonly event: ObjectSchema;
}

const schemas = new WeakMap<ObjectSchema, CborSchemas>();

function cborSchemasOf(schema: ObjectSchema): CborSchemas {
  let found = schemas.get(schema);
  if (found === undefined) {
    found = {
      list: object("List", {
        kind: optional(1, string),
        apiVersion: optional(2, string),
        metadata: required(3, listMeta),
        items: required(4, list(schema)),
      }),
      event: object("WatchEvent", { type: required(1, string), object: required(2, schema) }),
    };
    schemas.set(schema, found);
  }
  return found;
}

export function encodeCborObject<T extends ApiObject>({ schema }: Kind<T>, typeMeta: TypeMeta, value: T): Buffer {
  return encodeCbor(schema, { ...value, ...typeMeta });
}

export function encodeCborList<T extends ApiObject>(
  kind: Kind<T>,
  typeMeta: TypeMeta,
  itemIdentity: TypeMeta,
  metadata: object,
  objects: readonly T[],
): Buffer {
  // Items of custom resources have apiVersion and kind.
  const items = kind.custom === true ? objects.map((item) => ({ ...item, ...itemIdentity })) : objects;
  return encodeCbor(cborSchemasOf(kind.schema).list, { ...typeMeta, metadata, items });
}

/** An item of a CBOR sequence. */
export function encodeCborEvent<T extends ApiObject>(
  kind: Kind<T>,
  typeMeta: TypeMeta,
  type: string,
  value: T,
): Buffer {
  return encodeCbor(cborSchemasOf(kind.schema).event, { type, object: { ...value, ...typeMeta } });
}

/** Converts encoded JSON to CBOR. */
export function jsonToCbor(json: Uint8Array): Buffer {
  return encodeCborValue(parseExact(Buffer.from(json).toString()));
}
