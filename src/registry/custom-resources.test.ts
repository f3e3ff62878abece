import t from "tap";
import { customKind } from "../api/apiextensions/custom-kind.ts";
import { definitionOf, widgets } from "../api/apiextensions/fixture.ts";
import type { ApiObject, Kind } from "../api/kind.ts";
import { decode } from "../schema/decode.ts";
import { create } from "./create.ts";
import { fixture, refusal } from "./fixture.ts";
import { get } from "./get.ts";
import { update } from "./update.ts";

/** A resource as it comes from a client. */
function read(kind: Kind, body: object): ApiObject {
  return decode(kind.schema, { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "a" }, ...body })
    .value as ApiObject;
}

function causesOf(status: { readonly details?: { readonly causes?: readonly object[] } }): unknown {
  return status.details?.causes?.map((cause) => {
    const { reason, field } = cause as { readonly reason: string; readonly field: string };
    return `${reason} ${field}`;
  });
}

t.test("customKind() makes a kind whose objects are pruned, defaulted, stored and read again", async (t) => {
  await using f = fixture();
  const kind = customKind(
    widgets({
      spec: {
        type: "object",
        default: {},
        properties: { size: { type: "integer", default: 3 }, free: { "x-kubernetes-preserve-unknown-fields": true } },
      },
    }),
    "v1",
  );
  f.registries.scheme.register(kind);
  const registry = f.registries.of(kind);
  const sent = read(kind, { spec: { free: { any: [1, null] }, lost: 1 }, also: "lost" });
  t.match(await create(registry, f.scope(), sent), { spec: { size: 3, free: { any: [1, null] } } });
  const { object } = await get(registry, f.scope(), "a");
  t.match(object, { metadata: { generation: 1 }, spec: { size: 3, free: { any: [1, null] } } });
  t.notOk("also" in object);
  const key = (await f.store.list({ from: "/registry/example.com/", to: "/registry/example.com0" })).items[0]?.key;
  t.equal(key, "/registry/example.com/widgets/default/a");
  t.match(await create(registry, f.scope(), read(kind, { metadata: { name: "b" } })), { spec: { size: 3 } });
});

t.test("customKind() reports all that is wrong with an object, in Kubernetes' form", async (t) => {
  await using f = fixture();
  const kind = customKind(
    widgets({
      spec: {
        type: "object",
        required: ["name"],
        properties: {
          name: { type: "string", maxLength: 3 },
          size: { type: "integer", maximum: 10 },
          color: { type: "string", enum: ["red", "blue"] },
          when: { type: "string", format: "date-time" },
          ports: {
            type: "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port"],
            items: { type: "object", properties: { port: { type: "integer" } } },
          },
        },
        "x-kubernetes-validations": [{ rule: "self.size > 1" }],
      },
    }),
    "v1",
  );
  f.registries.scheme.register(kind);
  const spec = { size: "big", color: "green", when: "noon", ports: [{ port: 1 }, { port: 1 }] };
  const status = await refusal(create(f.registries.of(kind), f.scope(), read(kind, { spec })));
  t.equal(status.code, 422);
  t.same(causesOf(status), [
    "FieldValueRequired spec.name",
    "FieldValueTypeInvalid spec.size",
    "FieldValueNotSupported spec.color",
    "FieldValueTypeInvalid spec.when",
    "FieldValueDuplicate spec.ports[1]",
    "FieldValueInvalid <nil>",
  ]);
  t.match(status.message, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"');
});

t.test(
  "customKind() evaluates rules, with the old value where there is one, and spares what is untouched",
  async (t) => {
    await using f = fixture();
    const rules = [
      { rule: "self.size <= self.max", message: "too big", fieldPath: ".size" },
      {
        rule: "self.max >= oldSelf.max",
        messageExpression: "'max fell from ' + string(oldSelf.max)",
        reason: "FieldValueForbidden",
      },
    ] as const;
    const properties = { size: { type: "integer" }, max: { type: "integer" }, note: { type: "string" } };
    const strict = widgets({ spec: { type: "object", properties, "x-kubernetes-validations": rules } });
    const kind = customKind(strict, "v1");
    f.registries.scheme.register(kind);
    const registry = f.registries.of(kind);
    const bad = await refusal(create(registry, f.scope(), read(kind, { spec: { size: 5, max: 1 } })));
    t.match(bad.message, 'Widget "a" is invalid: spec.size: Invalid value: "object": too big');

    const made = await create(registry, f.scope(), read(kind, { spec: { size: 1, max: 3 } }));
    const { resourceVersion } = made.metadata ?? {};
    const next = read(kind, { metadata: { name: "a", resourceVersion }, spec: { size: 1, max: 2 } });
    const refused = await refusal(update(registry, f.scope(), "a", next));
    t.match(refused.message, 'Widget "a" is invalid: spec: Forbidden: max fell from 3');

    // Stored before the rule came: what the update leaves alone is only warned about.
    const old = { metadata: { name: "b" }, spec: { size: 5, max: 1 } };
    t.same(kind.strategy.validate?.({ ...old, status: { seen: true } } as ApiObject, old), []);
    t.match(kind.strategy.warnings?.(old, old), [/^spec\.size: Invalid value: "object": too big$/]);
    t.match(kind.strategy.validate?.({ ...old, spec: { size: 6, max: 1 } } as ApiObject, old), [
      { field: "spec.size" },
    ]);
  },
);

t.test("customKind() serves status and scale by the paths of the definition", async (t) => {
  const counted = { type: "object", properties: { replicas: { type: "integer" }, labels: { type: "string" } } };
  const kind = customKind(
    widgets(
      { spec: counted, status: counted },
      {
        subresources: {
          status: {},
          scale: {
            specReplicasPath: ".spec.replicas",
            statusReplicasPath: ".status.replicas",
            labelSelectorPath: ".status.labels",
          },
        },
      },
    ),
    "v1",
  );
  t.same(
    kind.subresources.map(({ name }) => name),
    ["status", "scale"],
  );
  const object = { metadata: { name: "a" }, spec: { replicas: 2 }, status: { replicas: 1, labels: "a=b" } };
  const scale = kind.subresources[1]?.view;
  t.match(scale?.of(object), { spec: { replicas: 2 }, status: { replicas: 1, selector: "a=b" } });
  t.match(scale?.changed(object, { spec: { replicas: 7 } } as ApiObject), {
    spec: { replicas: 7 },
    status: { replicas: 1 },
  });
  t.match(kind.strategy.validate?.({ ...object, spec: { replicas: -1 } } as ApiObject), [
    { field: ".spec.replicas", detail: "should be a non-negative integer" },
  ]);
  t.notOk("status" in (kind.strategy.prepareForCreate?.(object, "") ?? {}));
  const status = kind.subresources[0]?.part;
  const sent = { metadata: { name: "a", labels: { x: "y" } }, spec: { replicas: 9 }, status: { replicas: 3 } };
  t.match(status?.prepareForUpdate(sent, object, ""), { spec: { replicas: 2 }, status: { replicas: 3 } });
});

t.test("customKind() converts between versions by name, and knows names that were accepted", async (t) => {
  const schema = (more: object) => ({
    openAPIV3Schema: {
      type: "object",
      properties: { spec: { type: "object", properties: { a: { type: "string" }, ...more } } },
    },
  });
  const definition = definitionOf({ schema: schema({}) }, { schema: schema({ b: { type: "integer", default: 1 } }) });
  const accepted = { ...definition, status: { acceptedNames: { ...definition.spec.names, shortNames: ["wd"] } } };
  const kind = customKind(accepted, "v2");
  t.same(kind.shortNames, ["wd"]);
  t.equal(kind.conversion?.stored.version, "v1");
  t.same(kind.conversion?.fromStored({ spec: { a: "x", c: 2 } } as ApiObject), { spec: { a: "x", b: 1 } });
  t.throws(() => customKind(definition, "v3"), RangeError);
});

t.test("customKind() judges whole resources inside others", async (t) => {
  const template = {
    type: "object",
    "x-kubernetes-embedded-resource": true,
    "x-kubernetes-preserve-unknown-fields": true,
  };
  const kind = customKind(widgets({ spec: { type: "object", properties: { template } } }), "v1");
  const object = read(kind, {
    spec: { template: { kind: "bad kind", metadata: { labels: { "a b": "c" } }, data: 1 } },
  });
  t.match(object, { spec: { template: { data: 1 } } });
  const errors = kind.strategy.validate?.(object) ?? [];
  t.same(
    errors.map(({ type, field }) => `${type} ${field}`),
    [
      "FieldValueRequired spec.template.apiVersion",
      "FieldValueInvalid spec.template.kind",
      "FieldValueInvalid spec.template.metadata.labels",
    ],
  );
});
