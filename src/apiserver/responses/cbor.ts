/** Objects, lists and watch events in CBOR: what JSON says, with bytes as bytes. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { listMeta } from "../../api/meta/list-meta.ts";
import { encodeCbor, encodeCborValue } from "../../schema/cbor/encode.ts";
import { list, object, optional, required, string } from "../../schema/define.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import type { Identity } from "./type-meta.ts";

interface Shapes {
  readonly list: ObjectSchema;
  readonly event: ObjectSchema;
}

const shapes = new WeakMap<ObjectSchema, Shapes>();

function shapesOf(schema: ObjectSchema): Shapes {
  let made = shapes.get(schema);
  if (made === undefined) {
    made = {
      list: object("List", {
        kind: optional(1, string),
        apiVersion: optional(2, string),
        metadata: required(3, listMeta),
        items: required(4, list(schema)),
      }),
      event: object("WatchEvent", { type: required(1, string), object: required(2, schema) }),
    };
    shapes.set(schema, made);
  }
  return made;
}

export function cborObject<T extends ApiObject>({ schema }: Kind<T>, identity: Identity, value: T): Buffer {
  return encodeCbor(schema, { ...value, ...identity });
}

export function cborList<T extends ApiObject>(
  kind: Kind<T>,
  identity: Identity,
  itemIdentity: Identity,
  metadata: object,
  objects: readonly T[],
): Buffer {
  // Items of custom resources say what they are.
  const items = kind.custom === true ? objects.map((item) => ({ ...item, ...itemIdentity })) : objects;
  return encodeCbor(shapesOf(kind.schema).list, { ...identity, metadata, items });
}

/** An item of a sequence. */
export function cborEvent<T extends ApiObject>(kind: Kind<T>, identity: Identity, type: string, value: T): Buffer {
  return encodeCbor(shapesOf(kind.schema).event, { type, object: { ...value, ...identity } });
}

/** What has been written as JSON. */
export function cborOf(json: Uint8Array): Buffer {
  return encodeCborValue(JSON.parse(Buffer.from(json).toString()));
}
