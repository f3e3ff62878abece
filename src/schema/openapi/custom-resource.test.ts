import fc from "fast-check";
import t from "tap";
import { map, object, optional, string } from "../define.ts";
import type { ObjectSchema } from "../schema.ts";
import { convertResource } from "../structural/convert.ts";
import type { JsonSchemaProps } from "../structural/json-schema-props.ts";
import { customResourceSchema } from "./custom-resource.ts";
import { OpenApiComponents } from "./openapi.ts";
import type { OpenApiSchema } from "./schema-object.ts";

const members = { apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { type: "object" } };
const types = { anyOf: [{ type: "integer" }, { type: "string" }] };
const preserved = { "x-kubernetes-preserve-unknown-fields": true } as const;
const intOrString = { "x-kubernetes-int-or-string": true } as const;
const embedded = { type: "object", "x-kubernetes-embedded-resource": true } as const;
const text = { type: "string" } as const;

interface PublishedProperty {
  readonly given: JsonSchemaProps;
  /** `given` when absent. */
  readonly v2?: OpenApiSchema;
  readonly v3?: OpenApiSchema;
}

/** A property of a resource, and what each version publishes of it. */
const properties: Readonly<Record<string, PublishedProperty>> = {
  "a scalar with rules": {
    given: { type: "integer", format: "int32", minimum: 0, exclusiveMinimum: true, title: "T" },
  },
  "rules that are false or empty": {
    given: { type: "string", nullable: false, enum: [], required: [], description: "", uniqueItems: false },
    v2: text,
    v3: text,
  },
  "a default": { given: { type: "string", default: "a" }, v2: text },
  "a nullable object": {
    given: { type: "object", nullable: true, properties: { a: text }, description: "D" },
    v2: { description: "D" },
  },
  "a nullable list": { given: { type: "array", items: text, nullable: true }, v2: {} },
  "a nullable member that is required": {
    given: { type: "object", required: ["a", "b"], properties: { a: { type: "string", nullable: true }, b: text } },
    v2: { type: "object", required: ["b"], properties: { a: {}, b: text } },
  },
  "values that may be null": {
    given: { type: "object", required: ["a"], additionalProperties: { type: "string", nullable: true } },
    v2: { type: "object", additionalProperties: {} },
  },
  "a list without a type": { given: { type: "array", items: text } },
  "a list with a type": {
    given: {
      type: "array",
      items: { type: "object", properties: { a: text } },
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["a"],
    },
  },
  "an atomic map": {
    given: { type: "object", additionalProperties: text, "x-kubernetes-map-type": "atomic" },
  },
  "any members": { given: { type: "object", additionalProperties: true } },
  "an object with unknown members": {
    given: { type: "object", ...preserved, properties: { a: text }, required: ["a"] },
    v2: { ...preserved, required: ["a"] },
  },
  "any value": { given: preserved },
  "an int-or-string": { given: intOrString, v2: intOrString, v3: { ...intOrString, ...types } },
  "an int-or-string with its types": { given: { ...intOrString, ...types }, v2: intOrString },
  "an int-or-string with its types first in allOf": {
    given: { ...intOrString, allOf: [types, { minimum: 1 }] },
    v2: intOrString,
  },
  "an int-or-string with another anyOf": {
    given: { ...intOrString, anyOf: [{ minimum: 4 }], allOf: [{ maximum: 9 }] },
    v2: intOrString,
    v3: { ...intOrString, anyOf: [{ minimum: 4 }], allOf: [types, { maximum: 9 }] },
  },
  junctors: {
    given: { type: "object", properties: { a: text }, oneOf: [{ required: ["a"] }], not: { properties: { a: {} } } },
    v2: { type: "object", properties: { a: text } },
  },
  "CEL rules": { given: { type: "string", "x-kubernetes-validations": [{ rule: "self != ''", message: "M" }] } },
  "an embedded resource": {
    given: { ...embedded, properties: { spec: text }, required: ["spec"] },
    v2: { ...embedded, properties: { spec: text, ...members }, required: ["spec", "kind", "apiVersion"] },
    v3: { ...embedded, properties: { spec: text, ...members }, required: ["spec", "kind", "apiVersion"] },
  },
  "an embedded resource of any kind": {
    given: { ...embedded, ...preserved },
    v2: { "x-kubernetes-embedded-resource": true, ...preserved },
    v3: { ...embedded, ...preserved, properties: members, required: ["kind", "apiVersion"] },
  },
  "a member with the name of Object's prototype": {
    given: JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}') as JsonSchemaProps,
  },
};

for (const [name, { given, v2 = given, v3 = given }] of Object.entries(properties)) {
  t.test(`customResourceSchema() publishes ${name}`, async (t) => {
    const root: JsonSchemaProps = { type: "object", description: "A widget.", properties: { at: given } };
    for (const [version, published] of [[2, v2] as const, [3, v3] as const]) {
      const wanted = { type: "object", description: "A widget.", properties: { at: published, ...members } };
      t.same(customResourceSchema(root, version, members), wanted, `version ${version}`);
      const list = { type: "object", properties: { list: { type: "array", items: given } } } as const;
      const found = customResourceSchema(list, version, members).properties as Record<string, OpenApiSchema>;
      t.same(found.list, { type: "array", items: published }, `version ${version}, in a list`);
    }
  });
}

t.test("customResourceSchema() lists no members in version 2 when the root has unknown ones", async (t) => {
  const root: JsonSchemaProps = { type: "object", ...preserved, properties: { spec: text } };
  t.same(customResourceSchema(root, 2, members), { type: "object" });
  t.same(customResourceSchema(root, 3, members), { ...root, properties: { spec: text, ...members } });
});

t.test("OpenApiComponents publishes a custom resource and its list without defaults or invented texts", async (t) => {
  const objectMeta: ObjectSchema = object("meta/v1.ObjectMeta", { labels: optional(1, map(string)) });
  const listMeta: ObjectSchema = object("meta/v1.ListMeta", { continue: optional(1, string) });
  const props: JsonSchemaProps = { type: "object", properties: { spec: { type: "object" } } };
  const widget = convertResource(props, { name: "example.com/v1.Widget", metadata: objectMeta });
  const components = new OpenApiComponents(3, {
    structural: ({ name }) => (name === widget.name ? props : undefined),
    objectMeta,
    descriptions: () => ({ spec: "The desired state.", metadata: "Standard." }),
  });
  components.addList(widget, { name: "example.com/v1.WidgetList", meta: listMeta });
  const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  const metaName = "io.k8s.apimachinery.pkg.apis.meta.v1";
  const all = components.all();
  t.same(all["com.example.v1.Widget"]?.properties, {
    apiVersion: text,
    kind: text,
    metadata: { description: "Standard.", allOf: [reference(`${metaName}.ObjectMeta`)] },
    spec: { type: "object" },
  });
  t.match(all["com.example.v1.WidgetList"]?.properties, {
    items: { type: "array", items: reference("com.example.v1.Widget") },
    metadata: { allOf: [reference(`${metaName}.ListMeta`)], default: undefined },
  });
});

const { schema } = fc.letrec<{ schema: JsonSchemaProps }>((tie) => ({
  schema: fc.record<JsonSchemaProps>(
    {
      type: fc.constantFrom("object", "array", "string", "integer"),
      nullable: fc.boolean(),
      default: fc.constantFrom("a", 1, null),
      required: fc.subarray(["a", "b"]),
      items: fc.option(tie("schema"), { nil: undefined, maxDepth: 4 }),
      properties: fc.dictionary(fc.constantFrom("a", "b", "kind"), tie("schema"), { maxKeys: 2 }),
      anyOf: fc.constantFrom([{ minimum: 1 }], types.anyOf),
      not: fc.constant({ required: ["a"] }),
      "x-kubernetes-preserve-unknown-fields": fc.boolean(),
      "x-kubernetes-embedded-resource": fc.boolean(),
      "x-kubernetes-int-or-string": fc.boolean(),
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<JsonSchemaProps>,
}));

/** All subschemas of a published schema. */
function subschemas(published: OpenApiSchema): readonly OpenApiSchema[] {
  const nested = [published.items, ...Object.values((published.properties ?? {}) as object)] as OpenApiSchema[];
  return [published, ...nested.filter((each) => each !== undefined).flatMap(subschemas)];
}

t.test("customResourceSchema() publishes in version 2 what kubectl 1.20 understands, for any definition", async (t) => {
  fc.assert(
    fc.property(schema, (props) => {
      const published = customResourceSchema({ ...props, type: "object" }, 2, members);
      for (const each of subschemas(published)) {
        for (const name of ["anyOf", "not", "nullable", "default"]) if (name in each) return false;
        if (each.type === "array" && each.items === undefined) return false;
        if (each["x-kubernetes-preserve-unknown-fields"] === true && (each.type === "object" || "properties" in each))
          return false;
      }
      return true;
    }),
  );
  t.pass();
});
