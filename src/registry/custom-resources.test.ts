import t from "tap";
import { createCustomKind } from "../api/apiextensions/custom-resource/kind.ts";
import type { ApiObject, Kind } from "../api/kind.ts";
import { decode } from "../schema/decode/decode.ts";
import { TooManyValuesError } from "../schema/value/limits.ts";
import { runSteps } from "../std/async/steps.ts";
import { widgets } from "../testing/api/definition-fixture.ts";
import { fixture, rejectionStatus } from "../testing/registry/registry-fixture.ts";
import { apply as applyObject } from "./apply.ts";
import { create } from "./create.ts";
import { remove } from "./delete.ts";
import { get } from "./get.ts";
import { update } from "./update.ts";

/** A custom resource as a client sends it. */
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

t.test("customKind() returns a kind whose objects are pruned, defaulted, stored and read", async (t) => {
  await using f = fixture();
  const kind = createCustomKind(
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

t.test("customKind() reports all validation errors of an object in Kubernetes' format", async (t) => {
  await using f = fixture();
  const kind = createCustomKind(
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
  const status = await rejectionStatus(create(f.registries.of(kind), f.scope(), read(kind, { spec })));
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

t.test("customKind() evaluates rules with oldSelf on update, and skips unchanged fields", async (t) => {
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
  const kind = createCustomKind(strict, "v1");
  f.registries.scheme.register(kind);
  const registry = f.registries.of(kind);
  const bad = await rejectionStatus(create(registry, f.scope(), read(kind, { spec: { size: 5, max: 1 } })));
  t.match(bad.message, 'Widget "a" is invalid: spec.size: Invalid value: "object": too big');

  const made = await create(registry, f.scope(), read(kind, { spec: { size: 1, max: 3 } }));
  const { resourceVersion } = made.metadata ?? {};
  const next = read(kind, { metadata: { name: "a", resourceVersion }, spec: { size: 1, max: 2 } });
  const refused = await rejectionStatus(update(registry, f.scope(), "a", next));
  t.match(refused.message, 'Widget "a" is invalid: spec: Forbidden: max fell from 3');

  // Stored before the rule existed: for unchanged fields the update returns a warning only.
  const old = { metadata: { name: "b" }, spec: { size: 5, max: 1 } };
  const validate = (object: ApiObject) => runSteps(kind.strategy.validateInSteps!(object, old));
  const seen = { ...old, status: { seen: true } } as ApiObject;
  t.same(validate(seen), []);
  t.match(kind.strategy.warnings?.(seen, old), [/^spec\.size: Invalid value: "object": too big$/]);
  t.match(validate({ ...old, spec: { size: 6, max: 1 } } as ApiObject), [{ field: "spec.size" }]);
});

t.test("responses to writes have the defaults of the status, which is not stored", async (t) => {
  await using f = fixture();
  const status = {
    type: "object",
    default: { phase: "Pending" },
    properties: { phase: { type: "string" }, seen: { type: "boolean", default: false } },
  };
  const kind = createCustomKind(widgets({ status }, { subresources: { status: {} } }), "v1");
  f.registries.scheme.register(kind);
  const registry = f.registries.of(kind);
  const expected = { status: { phase: "Pending", seen: false } };
  const sent = read(kind, { status: { phase: "Ready" } });
  t.match(await create(registry, f.scope(), sent, { dryRun: true }), expected);
  const made = await create(registry, f.scope(), sent);
  t.match(made, expected);
  t.match((await get(registry, f.scope(), "a")).object, expected);
  const { resourceVersion } = made.metadata ?? {};
  const next = read(kind, { metadata: { name: "a", resourceVersion, labels: { a: "b" } } });
  t.match((await update(registry, f.scope(), "a", next)).object, { ...expected, metadata: { labels: { a: "b" } } });
});

t.test(
  "nulls of fields that are not nullable are removed from sent objects, and rejected in applied ones",
  async (t) => {
    await using f = fixture();
    const spec = {
      type: "object",
      properties: {
        part: { type: "object", properties: { name: { type: "string" } } },
        free: { type: "string", nullable: true },
        size: { type: "integer", default: 3 },
        labels: { type: "object", additionalProperties: { type: "string" } },
      },
    };
    const kind = createCustomKind(widgets({ spec }), "v1");
    f.registries.scheme.register(kind);
    const registry = f.registries.of(kind);
    const nulls = { part: null, free: null, size: null, labels: { a: null } };
    const made = await create(registry, f.scope(), read(kind, { spec: nulls }));
    t.same("spec" in made && made.spec, { free: null, size: 3, labels: {} });
    const scope = { ...f.scope(), group: "example.com" };
    const apply = (name: string, spec: object) => {
      const configuration = { apiVersion: "example.com/v1", kind: "Widget", metadata: { name }, spec };
      return applyObject(registry, scope, name, configuration, { fieldManager: "a", force: true });
    };
    const { message } = await rejectionStatus(apply("a", nulls));
    t.match(message, 'spec.part: Invalid value: "null": spec.part in body must be of type object: "null"');
    t.match(message, 'spec.labels.a: Invalid value: "null": spec.labels.a in body must be of type string: "null"');
    t.match((await apply("b", { free: null, size: null })).object, { spec: { free: null, size: 3 } });
  },
);

t.test("objects to which later defaults add too many values can be read, changed and deleted", async (t) => {
  const members = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}`, "v"]));
  const kindWith = (more: object): Kind => {
    const map = { type: "object", additionalProperties: { type: "string" }, ...more };
    const items = { type: "array", items: { type: "object", properties: { map } } };
    return createCustomKind(widgets({ items }), "v1");
  };
  await using f = fixture();
  const first = kindWith({});
  f.registries.scheme.register(first);
  const items = Array.from({ length: 1000 }, () => ({}));
  const metadata = { name: "a", finalizers: ["example.com/hold"] };
  await create(f.registries.of(first), f.scope(), read(first, { metadata, items }));
  await using later = fixture({ store: f.store });
  const second = kindWith({ default: members });
  later.registries.scheme.register(second);
  const registry = later.registries.of(second);
  const { object } = await get(registry, f.scope(), "a");
  t.same((object as { readonly items?: readonly object[] }).items?.length, 1000);
  const { finalizers: _, ...rest } = object.metadata ?? {};
  await t.rejects(create(registry, f.scope(), read(second, { metadata: { name: "b" }, items })), TooManyValuesError);
  const { object: changed } = await update(registry, f.scope(), "a", { ...object, metadata: rest });
  t.equal(changed.metadata?.finalizers, undefined);
  await remove(registry, f.scope(), "a");
  t.match(await rejectionStatus(get(registry, f.scope(), "a")), { code: 404 });
});
