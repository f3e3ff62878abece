/** Compares a document with the schema of its kind: unknown and repeated fields, and values of a wrong type. */
import { findNearest } from "../../flags/distance.ts";
import { decode } from "../../schema/decode/decode.ts";
import { membersOf } from "../../schema/members.ts";
import type { ObjectSchema, Schema } from "../../schema/schema.ts";
import { splitPath } from "../../schema/value/field-path.ts";
import { type Problem, problemAt, type Source } from "./problem.ts";

/** Names of fields that a message lists. */
const LISTED_MAX = 12;

export function checkStructure(source: Source, schema: ObjectSchema): readonly Problem[] {
  const { document } = source;
  const { unknown, errors } = decode(schema, document?.value);
  return [
    ...(document?.duplicates ?? []).map((field) =>
      problemAt(source, field, "the field is set twice", "remove one of the two"),
    ),
    ...unknown.map((field) => problemAt(source, field, "unknown field", suggestField(schema, field))),
    ...errors.map(({ path, message }) => problemAt(source, path, message, expectedValue(schemaAt(schema, path)))),
  ];
}

/** The field whose name is similar; undefined if there is none, and for a field that exists. */
export function findIntendedField(schema: ObjectSchema, field: string): string | undefined {
  const name = String(splitPath(field).at(-1) ?? "");
  const names = siblingsOf(schema, field);
  return names === undefined || names.includes(name) ? undefined : findNearest(name, names);
}

function siblingsOf(schema: ObjectSchema, field: string): readonly string[] | undefined {
  const parent = schemaAt(schema, field.slice(0, Math.max(field.lastIndexOf("."), field.lastIndexOf("["), 0)));
  return parent?.type === "object" ? membersOf(parent).map((member) => member.name) : undefined;
}

export function suggestField(schema: ObjectSchema, field: string): string {
  const names = siblingsOf(schema, field);
  if (names === undefined) return "remove it";
  const nearest = findIntendedField(schema, field);
  if (nearest !== undefined) return `did you mean ${nearest}?`;
  const listed = names.slice(0, LISTED_MAX).join(", ");
  return `the fields here are ${listed}${names.length > LISTED_MAX ? ", …" : ""}`;
}

function schemaAt(schema: Schema, path: string): Schema | undefined {
  let current: Schema | undefined = schema;
  for (const step of splitPath(path)) {
    if (current?.type === "object") current = membersOf(current).find(({ name }) => name === step)?.schema;
    else if (current?.type === "list") current = current.items;
    else if (current?.type === "map") current = current.values;
    else return undefined;
  }
  return current;
}

const SPECIAL = {
  time: 'expected a time such as "2026-01-02T15:04:05Z"',
  microTime: 'expected a time such as "2026-01-02T15:04:05.000000Z"',
  duration: 'expected a duration such as "30s" or "5m0s"',
  quantity: 'expected a quantity such as "100m" or "64Mi"',
  intOrString: "expected a number or a string",
};

function expectedValue(schema: Schema | undefined): string {
  switch (schema?.type) {
    case undefined:
      return "";
    case "string":
      return schema.values === undefined ? "expected a string" : `expected one of ${schema.values.join(", ")}`;
    case "integer":
      return `expected a whole number of ${schema.width.endsWith("32") ? 32 : 64} bits, without quotes`;
    case "number":
      return "expected a number, without quotes";
    case "boolean":
      return "expected true or false, without quotes";
    case "object":
    case "map":
    case "either":
      return "expected a mapping";
    case "list":
      return 'expected a list, whose items begin with "- "';
    case "bytes":
      return "expected text in base64";
    case "special":
      return SPECIAL[schema.format];
    case "enum":
      return `expected one of ${Object.keys(schema.numbers).join(", ")}`;
    default:
      return "";
  }
}
