/** How fields of each schema type are laid out on the wire, for both directions. */
import type { Field, ListSchema, ObjectSchema, Schema } from "../schema.ts";
import { wireBytes, wireFixed32, wireFixed64, wireVarint } from "./wire.ts";

export function wireTypeOf(schema: Schema): number {
  switch (schema.type) {
    case "integer":
    case "boolean":
    case "enum":
      return wireVarint;
    case "number":
      return schema.width === "double" ? wireFixed64 : wireFixed32;
    default:
      return wireBytes;
  }
}

/** The message that holds a list inside a list or map, as `ExtraValue` with its `items`. */
export function listMessage(schema: ListSchema): ObjectSchema {
  const items: Field = { schema, number: 1, presence: "optional" };
  return { type: "object", name: "items", fields: { items }, syntax: "proto2" };
}
