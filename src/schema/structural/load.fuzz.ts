/**
 * Fuzzes the loader of CustomResourceDefinition schemas: any value can be decoded, defaulted and validated by a loaded
 * schema, and a decoded value has no unknown members.
 */

import { fuzz } from "../../testing/schema/fuzz-harness.ts";
import { decode } from "../decode/decode.ts";
import { applyDefaults } from "../defaults.ts";
import { object, optional, string } from "../define.ts";
import { validate } from "../validation/validate.ts";
import { isPlainObject } from "../value/plain-object.ts";
import type { JsonSchemaProps } from "./json-schema-props.ts";
import { load } from "./load.ts";

const metadata = object("meta/v1.ObjectMeta", { name: optional(1, string) });
const values: readonly unknown[] = [{}, { a: 1, b: [null, { a: "x" }], spec: { a: { b: {} } } }, { a: { a: [1, 1] } }];

const samples: readonly JsonSchemaProps[] = [
  {
    type: "object",
    properties: {
      spec: {
        type: "object",
        required: ["a"],
        properties: { a: { type: "object", additionalProperties: { type: "array" } } },
      },
      a: { type: "integer", minimum: 1, multipleOf: 2, default: 4, nullable: true },
      b: { type: "array", items: { type: "string", pattern: "^a+$", format: "date" }, "x-kubernetes-list-type": "set" },
    },
  },
  {
    type: "object",
    "x-kubernetes-preserve-unknown-fields": true,
    anyOf: [{ required: ["a"] }, { not: { properties: { b: { enum: [1, null, {}] } } } }],
    properties: {
      b: { type: "array", items: { type: "object", properties: { a: { "x-kubernetes-int-or-string": true } } } },
    },
  },
];

/** The loader gets only schemas that decoding accepts, in which keywords have the right types. */
function isSchema(value: unknown): value is JsonSchemaProps {
  if (!isPlainObject(value)) return false;
  return Object.entries(value).every(([name, member]) => {
    switch (name) {
      case "properties":
        return isPlainObject(member) && Object.values(member).every(isSchema);
      case "items":
      case "additionalProperties":
      case "not":
        return isSchema(member);
      case "allOf":
      case "anyOf":
      case "oneOf":
        return Array.isArray(member) && member.every(isSchema);
      case "enum":
      case "required":
        return Array.isArray(member) && member.every((each) => typeof each === "string" || name === "enum");
      case "type":
      case "pattern":
      case "format":
      case "x-kubernetes-list-type":
        return typeof member === "string";
      case "default":
        return member !== null;
      default:
        return typeof member === (/^(?:m[ai][nx]|multipleOf)/.test(name) ? "number" : "boolean");
    }
  });
}

class NoSchema extends Error {}

fuzz({
  name: "structural",
  samples: samples.map((props) => Buffer.from(JSON.stringify(props))),
  words: [
    '"type":',
    '"object"',
    '"array"',
    '"properties":{',
    '"items":{',
    '"default":',
    '"__proto__":',
    "null",
    "{}",
    ",",
    "}",
    "1e9",
    '"nullable":true',
  ],
  read: (input) => {
    const props: unknown = JSON.parse(input.toString());
    if (!isSchema(props)) throw new NoSchema();
    const { schema } = load(props, { name: "fuzz/v1.Any", metadata });
    if (schema === undefined) return undefined;
    for (const value of values) {
      const read = applyDefaults(schema, decode(schema, value).value);
      validate(schema, read);
      const { unknown } = decode(schema, read);
      if (unknown.length > 0) throw new Error(`a decoded value has unknown members ${unknown.join(", ")}`);
    }
    return undefined;
  },
  isRefusal: (error) => error instanceof NoSchema || error instanceof SyntaxError,
});
