import t from "tap";
import { leaseKind } from "../api/coordination/lease/kind.ts";
import { configMapKind } from "../api/core/config-map/kind.ts";
import type { ConfigMap } from "../api/core/config-map/schema.ts";
import { podKind } from "../api/core/pod/kind.ts";
import { fixture, rejectionStatus } from "../testing/registry/registry-fixture.ts";
import { create } from "./create.ts";
import { remove } from "./delete.ts";
import { get } from "./get.ts";
import { patch } from "./patch.ts";
import type { Patch } from "./patches/apply-patch.ts";
import { update } from "./update.ts";

const podStatus = podKind.subresources.find(({ name }) => name === "status")?.strategy;

t.test("update() replaces an object, and writes nothing when nothing changes", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  const made = await create(maps, f.scope(), { metadata: { name: "a" }, data: { k: "1" } });
  const { object } = await update(maps, f.scope(), "a", { metadata: { name: "a" }, data: { k: "2" } });
  t.match(object, { metadata: { uid: made.metadata?.uid, creationTimestamp: made.metadata?.creationTimestamp } });
  t.same(object.data, { k: "2" });
  const again = await update(maps, f.scope(), "a", { metadata: { name: "a" }, data: { k: "2" } });
  t.equal(again.object.metadata?.resourceVersion, object.metadata?.resourceVersion);
  t.equal(String(f.store.current()), object.metadata?.resourceVersion);
});

t.test("update() rejects a stale resourceVersion, another uid and another name", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  const made = await create(maps, f.scope(), { metadata: { name: "a" } });
  await update(maps, f.scope(), "a", { metadata: { name: "a" }, data: { k: "2" } });
  const resourceVersion = made.metadata?.resourceVersion;
  t.match(await rejectionStatus(update(maps, f.scope(), "a", { metadata: { name: "a", resourceVersion } })), {
    code: 409,
    reason: "Conflict",
    message: `Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again`,
  });
  t.match(await rejectionStatus(update(maps, f.scope(), "a", { metadata: { name: "a", uid: "other" } })), {
    code: 409,
  });
  t.match(await rejectionStatus(update(maps, f.scope(), "a", { metadata: { name: "b" } })), {
    code: 400,
    message: "the name of the object (b) does not match the name on the URL (a)",
  });
  t.equal((await rejectionStatus(update(maps, f.scope(), "a", { metadata: {} }))).code, 400);
  t.equal((await rejectionStatus(update(maps, f.scope(), "zzz", { metadata: { name: "zzz" } }))).code, 404);
});

t.test(
  "update() creates a missing object if the kind allows it, and requires a resourceVersion if the kind does",
  async (t) => {
    await using f = fixture();
    const leases = f.registries.of(leaseKind);
    const spec = { holderIdentity: "n1", leaseDurationSeconds: 40 };
    const { created } = await update(leases, f.scope(), "n1", { metadata: { name: "n1" }, spec });
    t.equal(created, true);
    const refused = await rejectionStatus(update(leases, f.scope(), "n1", { metadata: { name: "n1" }, spec }));
    t.match(refused, {
      code: 422,
      message: /metadata\.resourceVersion: Invalid value: .* must be specified for an update/,
    });
  },
);

t.test("update() keeps spec and status apart", async (t) => {
  await using f = fixture();
  const pods = f.registries.of(podKind);
  const spec = { containers: [{ name: "c", image: "one" }] };
  await create(pods, f.scope(), { metadata: { name: "web" }, spec });
  const { object: pod } = await get(pods, f.scope(), "web");
  const running = { ...pod, spec: { ...pod.spec, containers: [] }, status: { phase: "Running" as const } };
  const { object } = await update(pods, f.scope(), "web", running, { subresourceStrategy: podStatus });
  t.equal(object.status?.phase, "Running");
  t.equal(object.spec?.containers[0]?.image, "one");
  const plain = await update(pods, f.scope(), "web", { ...object, status: { phase: "Failed" } });
  t.equal(plain.object.status?.phase, "Running");
});

t.test("update() that removes the last finalizer deletes the object", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  await create(maps, f.scope(), { metadata: { name: "a", finalizers: ["example.com/f"] } });
  const { object, deleted } = await remove(maps, f.scope(), "a");
  t.equal(deleted, false);
  t.ok(object.metadata?.deletionTimestamp);
  const added = { ...object, metadata: { ...object.metadata, finalizers: ["example.com/f", "example.com/g"] } };
  t.match(await rejectionStatus(update(maps, f.scope(), "a", added)), {
    code: 422,
    message: /no new finalizers can be added/,
  });
  await update(maps, f.scope(), "a", { ...object, metadata: { ...object.metadata, finalizers: [] } });
  t.equal((await rejectionStatus(get(maps, f.scope(), "a"))).code, 404);
});

const decode = (value: unknown): ConfigMap => {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = value as ConfigMap;
  return rest;
};

t.test("patch() applies JSON, merge and strategic merge patches", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  await create(maps, f.scope(), { metadata: { name: "a", finalizers: ["example.com/a"] }, data: { k: "1", l: "2" } });
  const apply = (sent: Patch) => patch(maps, f.scope(), "a", sent, { decode });
  const json = await apply({
    type: "json",
    operations: [
      { op: "test", path: "/data/k", value: "1" },
      { op: "replace", path: "/data/k", value: "x" },
      { op: "move", from: "/data/l", path: "/data/m" },
    ],
  });
  t.same(json.data, { k: "x", m: "2" });
  t.same((await apply({ type: "merge", value: { data: { k: null, n: "3" } } })).data, { m: "2", n: "3" });
  const merged = await apply({ type: "strategic", value: { metadata: { finalizers: ["example.com/b"] } } });
  t.same(merged.metadata?.finalizers, ["example.com/b", "example.com/a"]);
});

t.test("patch() that fails stores nothing", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  await create(maps, f.scope(), { metadata: { name: "a" }, data: { k: "1" } });
  const before = f.store.current();
  const operations = [
    { op: "replace" as const, path: "/data/k", value: "x" },
    { op: "remove" as const, path: "/data/none" },
  ];
  const half = patch(maps, f.scope(), "a", { type: "json", operations }, { decode });
  t.match(await rejectionStatus(half), { code: 422, reason: "Invalid" });
  const many = Array.from({ length: 10_001 }, () => ({ op: "test" as const, path: "/data/k", value: "1" }));
  t.equal(
    (await rejectionStatus(patch(maps, f.scope(), "a", { type: "json", operations: many }, { decode }))).code,
    413,
  );
  const stale = { type: "merge" as const, value: { metadata: { resourceVersion: "1" } } };
  t.equal((await rejectionStatus(patch(maps, f.scope(), "a", stale, { decode }))).code, 409);
  t.equal((await rejectionStatus(patch(maps, f.scope(), "z", { type: "merge", value: {} }, { decode }))).code, 404);
  t.equal(f.store.current(), before);
});

t.test("patch() is applied again to the object that another write stored", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  await create(maps, f.scope(), { metadata: { name: "a" }, data: {} });
  const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
  const one = (key: string) =>
    patch(maps, f.scope(), "a", { type: "merge", value: { data: { [key]: "v" } } }, { decode });
  await Promise.all(keys.map(one));
  t.same(Object.keys((await get(maps, f.scope(), "a")).object.data ?? {}).sort(), keys.sort());
});
