/** The protobuf message of a value of one of several types: a field for each type. */
import { boolean, object, optional, pointer, required } from "../define.ts";
import type { EitherSchema, Field, ObjectSchema } from "../schema.ts";

export interface EitherMessage {
  readonly boolean?: boolean;
  readonly object?: unknown;
  readonly list?: readonly unknown[];
}

const messages = new WeakMap<EitherSchema, ObjectSchema>();

export function eitherMessageOf(schema: EitherSchema): ObjectSchema {
  let message = messages.get(schema);
  if (message === undefined) {
    const fields: Record<string, Field> = { object: pointer(schema.object.number, schema.object.schema) };
    if (schema.boolean !== undefined) fields.boolean = required(schema.boolean, boolean);
    if (schema.list !== undefined) fields.list = optional(schema.list.number, schema.list.schema);
    message = object(schema.name, fields);
    messages.set(schema, message);
  }
  return message;
}

export function toEitherMessage(value: unknown): EitherMessage {
  if (typeof value === "boolean") return { boolean: value };
  return Array.isArray(value) ? { list: value } : { boolean: true, object: value };
}

/** Undefined when the message is empty. */
export function fromEitherMessage(schema: EitherSchema, message: EitherMessage): unknown {
  return message.object ?? message.list ?? (schema.boolean === undefined ? undefined : message.boolean === true);
}
