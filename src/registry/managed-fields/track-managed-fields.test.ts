import t from "tap";
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import { type Fixture, fixture } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { patch } from "../patch.ts";
import { update } from "../update.ts";

/** The managedFields as lines `manager operation subresource fields`. */
function managedFieldsLines(metadata: ObjectMeta | undefined): readonly string[] | undefined {
  return metadata?.managedFields?.map(({ manager, operation, subresource, fieldsV1 }) =>
    [manager, operation, subresource, JSON.stringify(fieldsV1)].filter((text) => text !== undefined).join(" "),
  );
}

const podStatus = podKind.subresources.find(({ name }) => name === "status")?.strategy;

function maps(f: Fixture) {
  const registry = f.registries.of(configMapKind);
  const scope = f.scope();
  const put = async (fieldManager: string | undefined, data: Record<string, string>, metadata: ObjectMeta = {}) => {
    const sent = { metadata: { name: "a", ...metadata }, data };
    return (await update(registry, scope, "a", sent, { fieldManager })).object;
  };
  return { registry, scope, put };
}

t.test("create() records the manager of the client's fields, and none for system metadata", async (t) => {
  await using f = fixture();
  const { registry, scope } = maps(f);
  const sent = { metadata: { name: "a", labels: { x: "1" } }, data: { k: "1" } };
  const made = await create(registry, scope, sent, { fieldManager: "maker" });
  t.same(made.metadata?.managedFields, [
    {
      manager: "maker",
      operation: "Update",
      apiVersion: "v1",
      time: "2026-01-01T00:00:00Z",
      fieldsType: "FieldsV1",
      fieldsV1: { "f:data": { ".": {}, "f:k": {} }, "f:metadata": { "f:labels": { ".": {}, "f:x": {} } } },
    },
  ]);
  const unnamed = await create(registry, scope, { metadata: { name: "b" }, data: { k: "1" } }, { fieldManager: "" });
  t.equal(unnamed.metadata?.managedFields?.[0]?.manager, "unknown");
  const silent = await create(registry, scope, { metadata: { name: "c" }, data: { k: "1" } });
  t.equal(silent.metadata?.managedFields, undefined, "without a field manager there are no managedFields");
});

t.test("update() takes over the fields it changes; entries of other managers keep their time", async (t) => {
  await using f = fixture();
  const { registry, scope, put } = maps(f);
  await create(registry, scope, { metadata: { name: "a" }, data: { k: "1", l: "1" } }, { fieldManager: "one" });
  await f.clock.advance(5000);
  const changed = await put("two", { k: "1", l: "2" });
  t.same(managedFieldsLines(changed.metadata), [
    `one Update {"f:data":{".":{},"f:k":{}}}`,
    `two Update {"f:data":{"f:l":{}}}`,
  ]);
  t.same(
    changed.metadata?.managedFields?.map(({ time }) => time),
    ["2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"],
  );
  await f.clock.advance(5000);
  const same = await put("three", { k: "1", l: "2" });
  t.same(same.metadata, changed.metadata, "nothing changed");
  const without = await put("two", {});
  t.equal(without.metadata?.managedFields, undefined, "removed fields have no manager");
});

t.test("update() has one entry per manager, version and subresource", async (t) => {
  await using f = fixture();
  const pods = f.registries.of(podKind);
  const spec = { containers: [{ name: "c", image: "one" }] };
  await create(pods, f.scope(), { metadata: { name: "p" }, spec }, { fieldManager: "agent" });
  const by = { fieldManager: "agent", subresource: "status", subresourceStrategy: podStatus };
  const running = { metadata: { name: "p" }, spec, status: { phase: "Running" as const } };
  await update(pods, f.scope(), "p", running, by);
  const { object } = await update(
    pods,
    f.scope(),
    "p",
    { ...running, status: { ...running.status, hostIP: "10.0.0.1" } },
    by,
  );
  const entries = object.metadata?.managedFields ?? [];
  t.same(entries.map(({ subresource }) => subresource).sort(), ["status", undefined]);
  const status = entries.find(({ subresource }) => subresource === "status");
  t.same(status?.fieldsV1, { "f:status": { "f:hostIP": {}, "f:phase": {} } });
});

t.test("update() by the server itself keeps managedFields", async (t) => {
  await using f = fixture();
  const { registry, scope, put } = maps(f);
  const sent = { metadata: { name: "a" }, data: { k: "1" } };
  const made = await create(registry, scope, sent, { fieldManager: "one" });
  t.same((await put(undefined, { k: "2" })).metadata?.managedFields, made.metadata?.managedFields);
});

t.test("update() adds no managedFields to an object without any", async (t) => {
  await using f = fixture();
  const { registry, scope, put } = maps(f);
  await create(registry, scope, { metadata: { name: "a" }, data: { k: "1" } });
  t.equal((await put("two", { k: "2" })).metadata?.managedFields, undefined);
});

t.test("a client may change or reset managedFields; invalid ones are ignored", async (t) => {
  await using f = fixture();
  const { registry, scope, put } = maps(f);
  await create(registry, scope, { metadata: { name: "a" }, data: { k: "1" } }, { fieldManager: "one" });
  const entry = {
    manager: "edited",
    operation: "Apply",
    apiVersion: "v1",
    time: "2020-01-01T00:00:00Z",
    fieldsType: "FieldsV1",
    fieldsV1: { "f:data": { "f:k": {} } },
  };
  const edited = await put("two", { k: "1" }, { managedFields: [entry] });
  t.same(edited.metadata?.managedFields, [entry]);
  const broken = [
    { ...entry, operation: "Foo" },
    { ...entry, fieldsType: "FieldsV9" },
    { ...entry, apiVersion: "" },
    { ...entry, fieldsV1: { nonsense: {} } },
    { ...entry, fieldsV1: { "f:data": "x" } },
  ];
  for (const one of broken) t.same((await put("two", { k: "1" }, { managedFields: [one] })).metadata, edited.metadata);
  t.equal((await put("two", { k: "1" }, { managedFields: [{}] })).metadata?.managedFields, undefined);
  await put("two", { k: "1" }, { managedFields: [entry] });
  t.equal((await put("two", { k: "1" }, { managedFields: [] })).metadata?.managedFields, undefined);
});

t.test("the oldest update managers are merged when there are more than ten", async (t) => {
  await using f = fixture();
  const { registry, scope } = maps(f);
  await create(registry, scope, { metadata: { name: "a" }, data: { k0: "1" } }, { fieldManager: "m0" });
  const decode = (value: unknown) => value as { readonly metadata: ObjectMeta };
  for (let i = 1; i <= 12; i++) {
    await f.clock.advance(1000);
    const merge = { type: "merge" as const, value: { data: { [`k${i}`]: "1" } } };
    await patch(registry, scope, "a", merge, { fieldManager: `m${i}`, decode });
  }
  const { object } = await update(
    registry,
    scope,
    "a",
    (await registry.freshCache(scope)).get(registry.key(scope, "a"))!.object,
  );
  const managers = object.metadata?.managedFields?.map(({ manager }) => manager);
  t.same(managers, ["ancient-changes", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11", "m12"]);
  t.match(managedFieldsLines(object.metadata)?.[0], /"f:k0":\{\},"f:k1":\{\},"f:k2":\{\},"f:k3":\{\}/);
});

t.test("the two aliases of a group are one version; an entry has the alias used last", async (t) => {
  await using f = fixture();
  const leases = f.registries.of(leaseKind);
  const scopeOfAlias = (domain: string) => ({ ...f.scope(), group: `coordination.${domain}` });
  const by = { fieldManager: "me" };
  const sent = { metadata: { name: "l" }, spec: { holderIdentity: "me" } };
  const { metadata } = await create(leases, scopeOfAlias("svc.io"), sent, by);
  const taken = { metadata, spec: { holderIdentity: "you", leaseDurationSeconds: 5 } };
  const { object } = await update(leases, scopeOfAlias("k8s.io"), "l", taken, by);
  t.equal(object.metadata?.managedFields?.length, 1);
  t.match(object.metadata?.managedFields?.[0], { apiVersion: "coordination.k8s.io/v1", manager: "me" });
});
