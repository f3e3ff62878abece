/** Formats values as Go's `%#v` does, for messages about invalid structs. */

import { membersOf } from "../members.ts";
import type { Schema } from "../schema.ts";
import { goQuote } from "../value/go-quote.ts";
import { type BadValue, unquoted } from "./field-error.ts";
import { goFieldName, goTypeName, isPointer } from "./go-diff.ts";

/** The address of a pointer; Kubernetes' differ from message to message. */
export const POINTER_ADDRESS = "0xc000000000";

/** A `badValue` that is formatted as a Go struct: `flowcontrol.GroupSubject{Name:"a"}`. */
export function goStruct(schema: Schema, value: unknown): BadValue {
  return unquoted(formatGoSyntax(schema, value));
}

/** A `badValue` of a pointer to a Go struct. */
export function goPointer(schema: Schema, value: unknown): BadValue {
  return value === undefined ? null : goStruct(schema, value);
}

/** Metadata has the same type in all versions. */
function typeName(schema: Schema): string {
  if (schema.type === "raw" && schema.format === "fieldsV1") return "v1.FieldsV1";
  return goTypeName(schema).replace(/(^|\])meta\./, "$1v1.");
}

/** A time formats itself, also behind a pointer. */
function formatPointer(schema: Schema, value: unknown): string {
  if (schema.type === "special" && schema.format === "time") return value === undefined ? "<nil>" : formatTime(value);
  return `(*${typeName(schema)})(${value === undefined ? "nil" : POINTER_ADDRESS})`;
}

/** Kubernetes reads times in the zone of the host. */
function formatTime(value: unknown): string {
  const time = new Date(String(value));
  if (Number.isNaN(time.getTime())) return "time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)";
  const month = time.toLocaleString("en-US", { month: "long", timeZone: "UTC" });
  const clock = `${time.getUTCHours()}, ${time.getUTCMinutes()}, ${time.getUTCSeconds()}, 0`;
  return `time.Date(${time.getUTCFullYear()}, time.${month}, ${time.getUTCDate()}, ${clock}, time.Local)`;
}

function formatGoSyntax(schema: Schema, value: unknown): string {
  switch (schema.type) {
    case "object": {
      const members = (value ?? {}) as Readonly<Record<string, unknown>>;
      const fields = membersOf(schema).map(({ name, field, schema: type }) => {
        const member = members[name];
        const text = isPointer(field) ? formatPointer(type, member) : formatGoSyntax(type, member);
        return `${goFieldName(name)}:${text}`;
      });
      return `${typeName(schema)}{${fields.join(", ")}}`;
    }
    case "list": {
      if (value === undefined || value === null) return `${typeName(schema)}(nil)`;
      const items = (value as readonly unknown[]).map((item) => formatGoSyntax(schema.items, item));
      return `${typeName(schema)}{${items.join(", ")}}`;
    }
    case "map": {
      if (value === undefined || value === null) return `${typeName(schema)}(nil)`;
      const entries = Object.entries(value as Readonly<Record<string, unknown>>).sort(([a], [b]) => (a < b ? -1 : 1));
      const texts = entries.map(([key, member]) => `${goQuote(key)}:${formatGoSyntax(schema.values, member)}`);
      return `${typeName(schema)}{${texts.join(", ")}}`;
    }
    case "special":
      if (schema.format === "intOrString") return formatIntOrString(value);
      return schema.format === "time" ? formatTime(value) : goQuote(String(value ?? ""));
    case "integer":
    case "number":
      return String(value ?? 0);
    case "boolean":
      return String(value ?? false);
    default:
      return goQuote(String(value ?? ""));
  }
}

function formatIntOrString(value: unknown): string {
  const text = typeof value === "string";
  return `intstr.IntOrString{Type:${text ? 1 : 0}, IntVal:${text ? 0 : Number(value ?? 0)}, StrVal:${goQuote(text ? value : "")}}`;
}
