import t from "tap";
import {
  int32,
  list,
  listMap,
  map,
  object,
  oneOf,
  optional,
  pointer,
  quantity,
  required,
  string,
  time,
} from "../define.ts";
import type { ObjectSchema, StringSchema } from "../schema.ts";
import { OpenApiComponents, openApiName } from "./openapi.ts";

const port = object("core/v1.Port", {
  number: required(1, int32),
  protocol: optional(2, oneOf("UDP", "TCP"), { default: "TCP" }),
});
const thing = object("core/v1.Thing", {
  at: pointer(1, time),
  amounts: optional(2, map(quantity)),
  ports: optional(3, listMap(port, "number"), { patchStrategy: "merge", patchMergeKey: "number" }),
  first: pointer(4, port, { description: "The one that counts." }),
  words: optional(5, list(string)),
});

t.test("openApiName() returns Kubernetes' names", async (t) => {
  t.equal(openApiName("core/v1.Pod"), "io.k8s.api.core.v1.Pod");
  t.equal(openApiName("meta/v1.ObjectMeta"), "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
});

t.test("OpenApiComponents adds a component per object schema, with extensions and defaults", async (t) => {
  const components = new OpenApiComponents(3);
  t.same(components.add(thing), { $ref: "#/components/schemas/io.k8s.api.core.v1.Thing" });
  const all = components.all();
  const reference = { $ref: "#/components/schemas/io.k8s.api.core.v1.Port" };
  t.same(Object.keys(all), [
    "io.k8s.api.core.v1.Port",
    "io.k8s.api.core.v1.Thing",
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
  ]);
  t.same(all["io.k8s.api.core.v1.Port"], {
    type: "object",
    required: ["number"],
    properties: {
      number: { type: "integer", format: "int32", default: 0 },
      protocol: { type: "string", enum: ["TCP", "UDP"], default: "TCP" },
    },
  });
  t.match(all["io.k8s.api.core.v1.Thing"]?.properties, {
    ports: {
      type: "array",
      items: { allOf: [reference], default: {} },
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["number"],
      "x-kubernetes-patch-strategy": "merge",
      "x-kubernetes-patch-merge-key": "number",
    },
    first: { description: "The one that counts.", allOf: [reference] },
    words: { type: "array", items: { type: "string", default: "" }, "x-kubernetes-list-type": "atomic" },
  });
});

t.test("OpenApiComponents writes references without allOf in version 2", async (t) => {
  const gvk = { "x-kubernetes-group-version-kind": [{ group: "", kind: "Thing", version: "v1" }] };
  const components = new OpenApiComponents(2, { markers: ({ name }) => (name === thing.name ? gvk : undefined) });
  components.add(thing);
  const found = components.all()["io.k8s.api.core.v1.Thing"];
  t.match(found, { "x-kubernetes-group-version-kind": [{ kind: "Thing" }] });
  t.match(found?.properties, { first: { $ref: "#/definitions/io.k8s.api.core.v1.Port" } });
});

t.test("OpenApiComponents handles recursive schemas", async (t) => {
  const self = (): ObjectSchema => tree;
  const tree: ObjectSchema = object("core/v1.Tree", { child: pointer(1, self) });
  const components = new OpenApiComponents(3);
  components.add(tree);
  t.same(Object.keys(components.all()), ["io.k8s.api.core.v1.Tree"]);
});

t.test("OpenApiComponents inlines the schemas of custom resources with their rules", async (t) => {
  const custom = { unstructured: true } as const;
  const text: StringSchema = { type: "string", ...custom };
  const spec: ObjectSchema = {
    type: "object",
    name: "example.com/v1.Widget.spec",
    syntax: "proto2",
    ...custom,
    preserveUnknown: true,
    rules: {
      types: ["object"],
      required: ["size"],
      validations: [{ rule: "self.size > 1" }],
      not: { required: ["x"] },
    },
    fields: {
      size: {
        schema: { type: "integer", width: "int64", as: "number", ...custom, nullable: true, rules: { minimum: 1 } },
        number: 0,
        presence: "pointer",
        default: 3,
        description: "How large.",
      },
      port: { schema: { type: "special", format: "intOrString", ...custom }, number: 0, presence: "pointer" },
      words: {
        schema: { type: "list", items: text, listType: "set", ...custom, rules: { maxItems: 5 } },
        number: 0,
        presence: "pointer",
      },
      any: { schema: { type: "raw", format: "json", ...custom }, number: 0, presence: "pointer" },
    },
  };
  const widget: ObjectSchema = {
    type: "object",
    name: "example.com/v1.Widget",
    syntax: "proto2",
    ...custom,
    fields: { spec: { schema: spec, number: 0, presence: "pointer" } },
  };
  const components = new OpenApiComponents(3);
  components.add(widget);
  const all = components.all();
  t.same(Object.keys(all), ["com.example.v1.Widget"]);
  const size = { type: "integer", minimum: 1, nullable: true, description: "How large.", default: 3 };
  const published = {
    type: "object",
    required: ["size"],
    not: { required: ["x"] },
    "x-kubernetes-validations": [{ rule: "self.size > 1" }],
    "x-kubernetes-preserve-unknown-fields": true,
    properties: {
      size,
      port: { "x-kubernetes-int-or-string": true },
      words: { type: "array", items: { type: "string" }, maxItems: 5, "x-kubernetes-list-type": "set" },
      any: { "x-kubernetes-preserve-unknown-fields": true },
    },
  };
  t.same(all["com.example.v1.Widget"], { type: "object", properties: { spec: published } });
  const old = new OpenApiComponents(2);
  old.add(widget);
  const { not: _, ...without } = published;
  const { nullable: __, default: ___, ...oldSize } = size;
  t.same(old.all()["com.example.v1.Widget"]?.properties, {
    spec: { ...without, properties: { ...without.properties, size: oldSize } },
  });
});
