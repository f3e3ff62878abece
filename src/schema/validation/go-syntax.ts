/** Formats values as Go's `%#v` does, for messages about invalid structs. */

import { membersOf } from "../members.ts";
import type { Schema } from "../schema.ts";
import { goQuote } from "../value/go-quote.ts";
import { unquoted } from "./field-error.ts";
import { goFieldName, goTypeName, isPointer } from "./go-diff.ts";

/** The address of a pointer; Kubernetes' differ from message to message. */
const ADDRESS = "0xc000000000";

/** A `badValue` that is formatted as a Go struct: `flowcontrol.GroupSubject{Name:"a"}`. */
export function goStruct(schema: Schema, value: unknown): unknown {
  return unquoted(formatGoSyntax(schema, value));
}

function formatGoSyntax(schema: Schema, value: unknown): string {
  switch (schema.type) {
    case "object": {
      const members = (value ?? {}) as Readonly<Record<string, unknown>>;
      const fields = membersOf(schema).map(({ name, field, schema: type }) => {
        const member = members[name];
        const text = isPointer(field)
          ? `(*${goTypeName(type)})(${member === undefined ? "nil" : ADDRESS})`
          : formatGoSyntax(type, member);
        return `${goFieldName(name)}:${text}`;
      });
      return `${goTypeName(schema)}{${fields.join(", ")}}`;
    }
    case "list": {
      if (value === undefined || value === null) return `${goTypeName(schema)}(nil)`;
      const items = (value as readonly unknown[]).map((item) => formatGoSyntax(schema.items, item));
      return `${goTypeName(schema)}{${items.join(", ")}}`;
    }
    case "integer":
    case "number":
      return String(value ?? 0);
    case "boolean":
      return String(value ?? false);
    default:
      return goQuote(String(value ?? ""));
  }
}
