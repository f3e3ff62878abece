/** Zero values as Go has them: of each schema type, and which values `omitempty` leaves out. */
import type { Member } from "./members.ts";
import type { Schema } from "./schema.ts";
import { hasNoMembers } from "./value/plain-object.ts";

/** Whether the value of an optional member equals its absence, as with `omitempty` in Go. */
export function isEmpty(member: Member, value: unknown): boolean {
  const { presence, emitEmpty = false, keepEmpty = false } = member.field;
  if (presence !== "optional" || emitEmpty || keepEmpty) return false;
  switch (member.schema.type) {
    case "string":
    case "bytes":
      return (value as string | Uint8Array).length === 0;
    case "integer":
    case "number":
      return Number(value) === 0;
    case "boolean":
      return value === false;
    case "list":
      return (value as readonly unknown[]).length === 0;
    case "map":
    case "object":
      return hasNoMembers(value as object);
    default:
      return false;
  }
}

/** The value of a required list that is absent: Go distinguishes it from an empty one. */
export const NIL_LIST: readonly never[] = Object.freeze([]);

/** Go's zero value of the type, which replaces null in lists and maps. */
export function zeroOf(schema: Schema): unknown {
  switch (schema.type) {
    case "integer":
      return schema.as === "bigint" ? 0n : 0;
    case "number":
      return 0;
    case "boolean":
      return false;
    case "list":
      return [];
    case "map":
    case "object":
      return {};
    case "raw":
      return null;
    case "bytes":
      return schema.as === "binary" ? new Uint8Array() : "";
    case "enum":
      return Object.keys(schema.numbers).find((name) => schema.numbers[name] === 0) ?? "0";
    case "special":
      if (schema.format === "intOrString") return 0;
      if (schema.format === "quantity") return "0";
      return schema.format === "duration" ? "0s" : null;
    default:
      return "";
  }
}
