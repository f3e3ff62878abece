import t from "tap";
import { jobKind } from "../api/batch/job/kind.ts";
import { configMapKind } from "../api/core/config-map/kind.ts";
import { podKind } from "../api/core/pod/kind.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import { type Fixture, fixture, rejectionStatus } from "../testing/registry/registry-fixture.ts";
import { create } from "./create.ts";
import { remove } from "./delete.ts";
import { deleteCollection } from "./delete-collection.ts";
import { get } from "./get.ts";
import { list } from "./list.ts";
import { update } from "./update.ts";
import { watch } from "./watch.ts";

async function pod(f: Fixture, spec: Partial<NonNullable<Pod["spec"]>> = {}) {
  const pods = f.registries.of(podKind);
  const containers = [{ name: "c", image: "i" }];
  await create(pods, f.scope(), { metadata: { name: "web" }, spec: { containers, ...spec } });
  return pods;
}

const podStatus = podKind.subresources.find(({ name }) => name === "status")?.strategy;

t.test("remove() sets the grace period of a pod on a node, and can only shorten it", async (t) => {
  await using f = fixture();
  const pods = await pod(f, { nodeName: "n1", terminationGracePeriodSeconds: 30 });
  const first = await remove(pods, f.scope(), "web");
  t.equal(first.deleted, false);
  t.match(first.object.metadata, { deletionTimestamp: "2026-01-01T00:00:30Z", deletionGracePeriodSeconds: 30 });
  const again = await remove(pods, f.scope(), "web", { gracePeriodSeconds: 60 });
  t.equal(again.object.metadata?.resourceVersion, first.object.metadata?.resourceVersion, "longer changes nothing");
  const shorter = await remove(pods, f.scope(), "web", { gracePeriodSeconds: 5 });
  t.match(shorter.object.metadata, { deletionTimestamp: "2026-01-01T00:00:05Z", deletionGracePeriodSeconds: 5 });
  const now = await remove(pods, f.scope(), "web", { gracePeriodSeconds: 0 });
  t.equal(now.deleted, true);
  t.equal((await rejectionStatus(get(pods, f.scope(), "web"))).code, 404);
});

t.test("remove() deletes a pod without a node at once, and watchers receive the terminating pod before", async (t) => {
  await using f = fixture();
  const pods = await pod(f);
  const events = await watch(pods, f.scope(), { resourceVersion: String(f.store.current()) });
  t.equal((await remove(pods, f.scope(), "web")).deleted, true);
  const seen: string[] = [];
  for await (const event of events) {
    if (event.type === "BOOKMARK") continue;
    seen.push(`${event.type} ${event.item.object.metadata?.deletionGracePeriodSeconds}`);
    if (event.type === "DELETED") break;
  }
  t.same(seen, ["MODIFIED 0", "DELETED 0"]);
});

t.test("remove() deletes a terminated pod without grace period", async (t) => {
  await using f = fixture();
  const pods = await pod(f, { nodeName: "n1" });
  const { object } = await get(pods, f.scope(), "web");
  await update(
    pods,
    f.scope(),
    "web",
    { ...object, status: { phase: "Succeeded" } },
    { subresourceStrategy: podStatus },
  );
  t.equal((await remove(pods, f.scope(), "web")).deleted, true);
});

t.test("remove() succeeds when another request deletes the terminating pod first", async (t) => {
  await using f = fixture();
  const pods = await pod(f);
  const { objects } = pods;
  const guaranteedUpdate = objects.guaranteedUpdate.bind(objects);
  objects.guaranteedUpdate = async (...args) => {
    objects.guaranteedUpdate = guaranteedUpdate;
    const marked = await guaranteedUpdate(...args);
    await remove(pods, f.scope(), "web");
    return marked;
  };
  const { deleted, object } = await remove(pods, f.scope(), "web");
  t.equal(deleted, true);
  t.equal(object.metadata?.deletionGracePeriodSeconds, 0);
});

t.test("remove() checks preconditions", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  const made = await create(maps, f.scope(), { metadata: { name: "a" } });
  const { uid, resourceVersion } = made.metadata ?? {};
  const refused = await rejectionStatus(remove(maps, f.scope(), "a", { preconditions: { uid: "other" } }));
  t.match(refused, { code: 409, message: /the UID in the precondition \(other\) does not match the UID in record/ });
  t.equal((await rejectionStatus(remove(maps, f.scope(), "a", { preconditions: { resourceVersion: "1" } }))).code, 409);
  t.equal((await remove(maps, f.scope(), "a", { dryRun: true })).deleted, true);
  t.equal((await remove(maps, f.scope(), "a", { preconditions: { uid, resourceVersion } })).deleted, true);
  t.equal((await rejectionStatus(remove(maps, f.scope(), "a"))).code, 404);
});

t.test("remove() adds the finalizers orphan and foregroundDeletion only with a garbage collector", async (t) => {
  for (const garbageCollector of [true, false]) {
    await using f = fixture({ garbageCollector });
    const maps = f.registries.of(configMapKind);
    for (const [name, propagationPolicy, finalizer] of [
      ["a", "Orphan", "orphan"],
      ["b", "Foreground", "foregroundDeletion"],
    ] as const) {
      await create(maps, f.scope(), { metadata: { name } });
      const { object, deleted } = await remove(maps, f.scope(), name, { propagationPolicy });
      t.equal(deleted, !garbageCollector);
      t.same(object.metadata?.finalizers, garbageCollector ? [finalizer] : undefined);
    }
    await create(maps, f.scope(), { metadata: { name: "c" } });
    t.equal((await remove(maps, f.scope(), "c", { propagationPolicy: "Background" })).deleted, true);
  }
});

t.test("remove() of a job orphans its pods unless the request or a finalizer sets another policy", async (t) => {
  await using f = fixture({ garbageCollector: true });
  const jobs = f.registries.of(jobKind);
  const cases = [
    [{}, undefined, ["orphan"]],
    [{ propagationPolicy: "Background" }, undefined, undefined],
    [{ propagationPolicy: "Foreground" }, undefined, ["foregroundDeletion"]],
    [{}, ["foregroundDeletion"], ["foregroundDeletion"]],
  ] as const;
  for (const [i, [options, finalizers, expected]] of cases.entries()) {
    const name = `job-${i}`;
    const template = { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } } as const;
    await create(jobs, f.scope(), { metadata: { name, finalizers }, spec: { template } });
    const { object, deleted } = await remove(jobs, f.scope(), name, options);
    t.same(object.metadata?.finalizers, expected);
    t.equal(deleted, expected === undefined);
  }
});

t.test("deleteCollection() deletes the objects of a list", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  for (const name of ["a", "b", "c"]) {
    const finalizers = name === "c" ? ["example.com/f"] : [];
    await create(maps, f.scope(), { metadata: { name, labels: { n: name }, finalizers } });
  }
  const page = await deleteCollection(maps, f.scope(), { labelSelector: "n in (b,c)" }, {});
  t.equal(page.items.length, 2);
  const left = await list(maps, f.scope());
  t.same(
    left.items.map(({ object }) => [object.metadata?.name, object.metadata?.deletionTimestamp !== undefined]),
    [
      ["a", false],
      ["c", true],
    ],
  );
});

t.test("deleteCollection() deletes with its number of workers, and at most limit objects", async (t) => {
  await using f = fixture({ deleteCollectionWorkers: 4 });
  const maps = f.registries.of(configMapKind);
  const names = Array.from({ length: 10 }, (_, i) => `m${i}`);
  for (const name of names) await create(maps, f.scope(), { metadata: { name } });
  const left = async () => (await list(maps, f.scope())).items.map(({ object }) => object.metadata?.name);
  t.equal((await deleteCollection(maps, f.scope(), {}, { dryRun: true })).items.length, 10);
  t.same(await left(), names, "a dry run removes nothing");
  t.equal((await deleteCollection(maps, f.scope(), { limit: 3 }, {})).items.length, 3);
  t.same(await left(), names.slice(3));
  const wrong = deleteCollection(maps, f.scope(), {}, { preconditions: { uid: "other" } });
  t.equal((await rejectionStatus(wrong)).code, 409);
  t.same(await left(), names.slice(3), "a failure ends it");
  await deleteCollection(maps, f.scope(), {}, {});
  t.same(await left(), []);
});
