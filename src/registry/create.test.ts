import t from "tap";
import { leaseKind } from "../api/coordination/lease/kind.ts";
import { configMapKind } from "../api/core/config-map/kind.ts";
import { eventKind } from "../api/core/event/kind.ts";
import { podKind } from "../api/core/pod/kind.ts";
import { fixture, rejectionStatus } from "../testing/registry/registry-fixture.ts";
import { create } from "./create.ts";
import { remove } from "./delete.ts";
import { get } from "./get.ts";

t.test("create() sets system metadata and drops that of the client", async (t) => {
  await using f = fixture();
  const pods = f.registries.of(podKind);
  const sent = {
    metadata: { name: "web", uid: "mine", deletionTimestamp: "2020-01-01T00:00:00Z", generation: 7 },
    spec: { containers: [{ name: "c", image: "busybox" }] },
    status: { phase: "Running" as const },
  };
  const pod = await create(pods, f.scope(), sent);
  t.match(pod.metadata, { name: "web", namespace: "default", creationTimestamp: "2026-01-01T00:00:00Z" });
  t.match(pod.metadata?.uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  t.equal(pod.metadata?.deletionTimestamp, undefined);
  t.equal(pod.metadata?.resourceVersion, String(f.store.current()));
  t.equal(pod.status?.phase, "Pending");
  t.equal(pod.spec?.restartPolicy, "Always", "defaults are in");
  t.same((await get(pods, f.scope(), "web")).object.metadata, pod.metadata);
});

t.test("create() generates a name from generateName unless the object has one", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  const one = await create(maps, f.scope(), { metadata: { generateName: "gen-" } });
  const two = await create(maps, f.scope(), { metadata: { generateName: "gen-" } });
  t.match(one.metadata?.name, /^gen-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  t.not(one.metadata?.name, two.metadata?.name);
  const long = await create(maps, f.scope(), { metadata: { generateName: "x".repeat(100) } });
  t.equal(long.metadata?.name?.length, 63);
  const named = await create(maps, f.scope(), { metadata: { generateName: "gen-", name: "given" } });
  t.equal(named.metadata?.name, "given");
});

t.test("create() fails with AlreadyExists when all generated names are taken", async (t) => {
  const unlucky = { bytes: (count: number) => Buffer.alloc(count, 7), fraction: () => 0.5 };
  await using f = fixture({ random: unlucky });
  const maps = f.registries.of(configMapKind);
  const taken = (await create(maps, f.scope(), { metadata: { generateName: "gen-" } })).metadata?.name;
  const status = await rejectionStatus(create(maps, f.scope(), { metadata: { generateName: "gen-" } }));
  t.match(status, { code: 409, reason: "AlreadyExists", details: { name: taken, retryAfterSeconds: 1 } });
  const why = "the server was not able to generate a unique name for the object";
  t.equal(status.message, `configmaps "${taken}" already exists, ${why}`);
});

t.test("create() reports that the existing object is being deleted", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  await create(maps, f.scope(), { metadata: { name: "a", finalizers: ["x.io/wait"] } });
  const plain = await rejectionStatus(create(maps, f.scope(), { metadata: { name: "a" } }));
  t.equal(plain.message, 'configmaps "a" already exists');
  await remove(maps, f.scope(), "a");
  const leaving = await rejectionStatus(create(maps, f.scope(), { metadata: { name: "a" } }));
  t.equal(leaving.message, 'object is being deleted: configmaps "a" already exists');
});

t.test("create() rejects invalid objects with Kubernetes' messages", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  await create(maps, f.scope(), { metadata: { name: "a" } });
  const cases = [
    [{ metadata: { name: "a" } }, 409, `configmaps "a" already exists`],
    [{ metadata: {} }, 422, `ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required`],
    [
      { metadata: { name: "b", resourceVersion: "1" } },
      500,
      "resourceVersion should not be set on objects to be created",
    ],
    [
      { metadata: { name: "b", namespace: "other" } },
      400,
      "the namespace of the provided object does not match the namespace sent on the request",
    ],
  ] as const;
  for (const [sent, code, message] of cases) {
    t.match(await rejectionStatus(create(maps, f.scope(), sent)), { code, message });
  }
  const { message } = await rejectionStatus(create(maps, f.scope(), { metadata: { name: "Not.A_Name" } }));
  t.match(message, /ConfigMap "Not\.A_Name" is invalid: metadata\.name: Invalid value/);
});

t.test("create() with dryRun validates and stores nothing", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  const before = f.store.current();
  const object = await create(maps, f.scope(), { metadata: { name: "a" } }, { dryRun: true });
  t.equal(object.metadata?.resourceVersion, undefined);
  t.equal(f.store.current(), before);
  await create(maps, f.scope(), { metadata: { name: "a" } });
  t.equal((await rejectionStatus(create(maps, f.scope(), { metadata: { name: "a" } }, { dryRun: true }))).code, 409);
});

t.test("create() fails with the group alias of the request", async (t) => {
  await using f = fixture();
  const leases = f.registries.of(leaseKind);
  const scope = { ...f.scope(), group: "coordination.k8s.io" };
  await create(leases, scope, { metadata: { name: "l" } });
  const { message, details } = await rejectionStatus(create(leases, scope, { metadata: { name: "l" } }));
  t.equal(message, `leases.coordination.k8s.io "l" already exists`);
  t.equal(details?.group, "coordination.k8s.io");
});

t.test("create() stores events with the event TTL", async (t) => {
  await using f = fixture({ eventTtlSeconds: 3600 });
  const events = f.registries.of(eventKind);
  const involvedObject = { kind: "Pod", namespace: "default", name: "web" };
  await create(events, f.scope(), {
    metadata: { name: "e" },
    involvedObject,
    reason: "R",
    message: "m",
    type: "Normal",
  });
  t.equal((await get(events, f.scope(), "e")).object.reason, "R");
  await f.clock.advance(3_602_000);
  t.equal((await rejectionStatus(get(events, f.scope(), "e"))).code, 404);
});
