import t from "tap";
import { object, optional, string } from "../define.ts";
import { renderFieldError } from "../validation/field-error.ts";
import type { JsonSchemaProps } from "./json-schema-props.ts";
import { load } from "./load.ts";

const metadata = object("meta/v1.ObjectMeta", {
  name: optional(1, string),
  labels: optional(11, { type: "map", values: string }),
});
const options = { name: "example.com/v1.Widget", metadata, path: "s" };

/** A schema with one property `a`. */
function withProperty(a: object): JsonSchemaProps {
  return { type: "object", properties: { a } };
}

function errorsOf(props: JsonSchemaProps): readonly string[] {
  return (load(props, options).errors ?? []).map((error) => `${error.field}: ${renderFieldError(error)}`);
}

const A = "s.properties[a]";
const refused: readonly (readonly [what: string, props: JsonSchemaProps, errors: readonly string[]])[] = [
  ["a root without a type", {}, ["s.type: Required value: must not be empty at the root"]],
  ["another type at the root", { type: "string" }, ['s.type: Invalid value: "string": must be object at the root']],
  [
    "a part without a type",
    withProperty({}),
    [`${A}.type: Required value: must not be empty for specified object fields`],
  ],
  ["a list without items", withProperty({ type: "array" }), [`${A}.items: Required value: must be specified`]],
  [
    "type keywords inside a junctor",
    withProperty({ type: "string", not: { type: "string", default: "x", nullable: true } }),
    [
      `${A}.not.default: Forbidden: must be undefined to be structural`,
      `${A}.not.nullable: Forbidden: must be false to be structural`,
      `${A}.not.type: Forbidden: must be empty to be structural`,
    ],
  ],
  [
    "a junctor at the root with an unspecified property",
    { type: "object", anyOf: [{ properties: { b: { minimum: 1 } } }] },
    ["s.properties[b]: Required value: because it is defined in s.anyOf[0].properties[b]"],
  ],
  [
    "more of metadata than its name",
    { type: "object", properties: { metadata: { type: "object", properties: { labels: { type: "object" } } } } },
    [
      "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
    ],
  ],
  [
    "a default that is not valid",
    withProperty({ type: "integer", minimum: 5, default: 1 }),
    [`${A}.default: Invalid value: 1:  in body should be greater than or equal to 5`],
  ],
  [
    "a default that is not pruned",
    withProperty({ type: "object", properties: { b: { type: "string" } }, default: { c: 1 } }),
    [`${A}.default: Invalid value: map[string]interface {}{"c":1}: must not have unknown fields`],
  ],
  [
    "an invalid default in embedded metadata",
    withProperty({
      type: "object",
      "x-kubernetes-embedded-resource": true,
      properties: { metadata: { type: "object", default: { labels: 5 } } },
    }),
    [
      `${A}.properties[metadata].default: Invalid value: map[string]interface {}{"labels":5}: must result in valid metadata: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type map[string]string`,
    ],
  ],
  [
    "optional keys of a map list",
    withProperty({
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["k"],
      items: { type: "object", properties: { k: { type: "string" } } },
    }),
    [
      `${A}.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
    ],
  ],
  [
    "unsupported keywords, without other errors",
    { type: "object", properties: { a: { $ref: "#/x" }, b: {} } },
    [`${A}.$ref: Forbidden: $ref is not supported`],
  ],
  [
    "an expression that RE2 does not support",
    withProperty({ type: "string", pattern: "(?=a)" }),
    [
      `${A}.pattern: Invalid value: "(?=a)": must be a valid regular expression, but isn't: error parsing regexp: invalid or unsupported Perl syntax: \`(?=\``,
    ],
  ],
];

for (const [what, props, errors] of refused) {
  t.test(`load() rejects ${what}`, async (t) => t.same(errorsOf(props), errors));
}

t.test("load() allows anyOf integer and string for int-or-string, and no other types in junctors", async (t) => {
  const both = [{ type: "integer" }, { type: "string" }];
  const intOrString = { "x-kubernetes-int-or-string": true };
  t.same(errorsOf(withProperty({ ...intOrString, anyOf: both })), []);
  t.same(errorsOf(withProperty({ ...intOrString, allOf: [{ anyOf: both }, { pattern: "a" }] })), []);
  t.equal(errorsOf(withProperty({ ...intOrString, oneOf: both })).length, 2);
});

t.test("load() converts a structural schema to a Schema", async (t) => {
  const { schema } = load(
    {
      type: "object",
      properties: {
        spec: {
          type: "object",
          required: ["n"],
          properties: {
            n: { type: "integer", minimum: 1, default: 2, description: "How many." },
            s: { type: "string", format: "date-time", nullable: true },
            l: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" },
            m: { type: "object", additionalProperties: { type: "boolean" }, "x-kubernetes-map-type": "atomic" },
            p: { "x-kubernetes-int-or-string": true },
          },
        },
      },
    },
    options,
  );
  t.same(Object.keys(schema?.fields ?? {}), ["apiVersion", "kind", "metadata", "spec"]);
  t.match(schema?.fields.spec?.schema, {
    type: "object",
    name: "example.com/v1.Widget.spec",
    rules: { types: ["object"], required: ["n"] },
    fields: {
      n: { default: 2, description: "How many.", schema: { type: "integer", width: "int64", rules: { minimum: 1 } } },
      s: { schema: { type: "string", nullable: true, rules: { format: "date-time" } } },
      l: { schema: { type: "list", listType: "set", items: { type: "string" } } },
      m: { schema: { type: "map", atomic: true, values: { type: "boolean" } } },
      p: { schema: { type: "special", format: "intOrString" } },
    },
  });
});

t.test("load() accepts any names, and schemas as deep and wide as a request allows", async (t) => {
  const named = JSON.parse('{"__proto__":{"type":"string"},"constructor":{"type":"integer"}}') as object;
  const { schema } = load(
    { type: "object", properties: { spec: { type: "object", properties: { ...named } } } },
    options,
  );
  t.same(({} as Record<string, unknown>).type, undefined);
  t.ok(schema);
  let deep: JsonSchemaProps = { type: "string" };
  for (let level = 0; level < 90; level++) deep = withProperty(deep);
  t.same(errorsOf(deep), []);
  const values = Array.from({ length: 50_000 }, (_, i) => `v${i}`);
  t.same(errorsOf(withProperty({ type: "string", enum: values, default: "v49999" })), []);
});
