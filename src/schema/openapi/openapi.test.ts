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
import type { ObjectSchema } from "../schema.ts";
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
