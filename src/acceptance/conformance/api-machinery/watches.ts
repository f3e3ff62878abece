/** Watches of ConfigMaps, lists in chunks, tables, and discovery. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import type { Behaviours, TestNamespace } from "../harness/behaviour.ts";
import { define, groupOf } from "./definitions.ts";

const mapOf = (name: string, label: string, data: object = {}) => ({
  metadata: { name, labels: { "watch-this-configmap": label } },
  data,
});
const select = (label: string): string => `labelSelector=watch-this-configmap+in+(${label})`;

/** Type and name of the events, after what else may come has had time to. */
async function eventsOf({ events }: { events: readonly { type: string; object: Json }[] }, count: number) {
  await until(`${count} events`, () => events.length >= count);
  await sleep(500);
  return events.map(({ type, object }) => `${type} ${object.metadata.name} ${object.data?.mutation ?? 0}`);
}

async function observeChanges(at: TestNamespace): Promise<void> {
  const path = at.path("configmaps");
  using a = await at.api.watch(`${path}?${select("a")}`);
  using b = await at.api.watch(`${path}?${select("b")}`);
  using both = await at.api.watch(`${path}?${select("a,b")}`);
  await at.api.post(path, mapOf("a", "a"));
  await at.api.patch(`${path}/a`, { data: { mutation: "1" } });
  await at.api.patch(`${path}/a`, { data: { mutation: "2" } });
  await at.api.delete(`${path}/a`);
  await at.api.post(path, mapOf("b", "b"));
  await at.api.delete(`${path}/b`);
  await at.api.post(path, mapOf("c", "c"));
  const ofA = ["ADDED a 0", "MODIFIED a 1", "MODIFIED a 2", "DELETED a 2"];
  const ofB = ["ADDED b 0", "DELETED b 0"];
  assert.deepEqual(await eventsOf(both, 6), [...ofA, ...ofB]);
  assert.deepEqual(await eventsOf(a, 4), ofA);
  assert.deepEqual(await eventsOf(b, 2), ofB);
}

async function startFromVersion(at: TestNamespace): Promise<void> {
  const path = at.path("configmaps");
  await at.api.post(path, mapOf("m", "v"));
  const first = await at.api.patch(`${path}/m`, { data: { mutation: "1" } });
  await at.api.patch(`${path}/m`, { data: { mutation: "2" } });
  await at.api.delete(`${path}/m`);
  using watch = await at.api.watch(`${path}?${select("v")}&resourceVersion=${first.metadata.resourceVersion}`);
  assert.deepEqual(await eventsOf(watch, 2), ["MODIFIED m 2", "DELETED m 2"]);
}

async function restartWatch(at: TestNamespace): Promise<void> {
  const path = at.path("configmaps");
  const watch = await at.api.watch(`${path}?${select("r")}`);
  await at.api.post(path, mapOf("m", "r"));
  const first = await at.api.patch(`${path}/m`, { data: { mutation: "1" } });
  assert.deepEqual(await eventsOf(watch, 2), ["ADDED m 0", "MODIFIED m 1"]);
  const last = watch.events.at(-1)?.object.metadata.resourceVersion;
  assert.equal(last, first.metadata.resourceVersion);
  watch[Symbol.dispose]();
  await at.api.patch(`${path}/m`, { data: { mutation: "2" } });
  await at.api.delete(`${path}/m`);
  using again = await at.api.watch(`${path}?${select("r")}&resourceVersion=${last}`);
  assert.deepEqual(await eventsOf(again, 2), ["MODIFIED m 2", "DELETED m 2"]);
}

async function loseMatch(at: TestNamespace): Promise<void> {
  const path = at.path("configmaps");
  using watch = await at.api.watch(`${path}?${select("x")}`);
  const label = (value: string) => ({ metadata: { labels: { "watch-this-configmap": value } } });
  await at.api.post(path, mapOf("m", "x"));
  await at.api.patch(`${path}/m`, { data: { mutation: "1" } });
  await at.api.patch(`${path}/m`, label("other"));
  await at.api.patch(`${path}/m`, { data: { mutation: "2" } });
  await at.api.patch(`${path}/m`, label("x"));
  await at.api.patch(`${path}/m`, { data: { mutation: "3" } });
  await at.api.delete(`${path}/m`);
  assert.deepEqual(await eventsOf(watch, 6), [
    "ADDED m 0",
    "MODIFIED m 1",
    "DELETED m 1",
    "ADDED m 2",
    "MODIFIED m 3",
    "DELETED m 3",
  ]);
}

async function returnChunks(at: TestNamespace): Promise<void> {
  const path = at.path("podtemplates");
  const COUNT = 100;
  const LIMIT = 17;
  const template = { spec: { containers: [{ name: "c", image: "image:1" }] } };
  const nameOf = (index: number): string => `template-${String(index).padStart(4, "0")}`;
  for (let index = 0; index < COUNT; index++) await at.api.post(path, { metadata: { name: nameOf(index) }, template });
  const found: string[] = [];
  let [token, version] = ["", ""];
  do {
    const query = token === "" ? "" : `&continue=${encodeURIComponent(token)}`;
    const { items, metadata } = await at.api.get(`${path}?limit=${LIMIT}${query}`);
    found.push(...items.map((item: Json) => item.metadata.name));
    version = version === "" ? metadata.resourceVersion : version;
    assert.equal(metadata.resourceVersion, version, "of one version");
    assert.ok(items.length <= LIMIT);
    assert.equal(metadata.remainingItemCount ?? 0, COUNT - found.length);
    token = metadata.continue ?? "";
    // What is created later is not in the list.
    if (found.length === LIMIT) await at.api.post(path, { metadata: { name: "template-0050-late" }, template });
  } while (token !== "");
  assert.deepEqual(
    found,
    Array.from({ length: COUNT }, (_, index) => nameOf(index)),
  );
  const all = await at.api.get(`${path}?limit=${COUNT + 1}`);
  assert.equal(all.items.length, COUNT + 1);
  assert.equal(all.metadata.continue ?? "", "");
}

async function refuseTable(at: TestNamespace): Promise<void> {
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: { namespace: at.name, verb: "get", resource: "pods" } },
  };
  const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const { status, json } = await at.api.send(`POST ${path}`, { body, headers: { accept } });
  assert.equal(status, 406);
  assert.equal(json.reason, "NotAcceptable");
}

async function locateGroups(at: TestNamespace): Promise<void> {
  const { groups } = await at.api.get("/apis");
  assert.ok(groups.length > 10);
  for (const { name, preferredVersion, versions } of groups) {
    if (name.endsWith(".example.com")) continue;
    for (const { groupVersion } of versions) {
      const list = await at.api.get(`/apis/${groupVersion}`);
      assert.equal(list.kind, "APIResourceList");
      assert.equal(list.groupVersion, groupVersion);
      const [resource] = list.resources;
      assert.ok(resource.name && resource.kind && resource.verbs.length > 0, `${groupVersion} has a resource`);
    }
    assert.ok(versions.some(({ groupVersion }: Json) => groupVersion === preferredVersion.groupVersion));
  }
}

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Resources that are built in, by `group/version`. */
const builtIn: Readonly<Record<string, readonly string[]>> = {
  "apps/v1": ["deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"],
  "batch/v1": ["jobs", "cronjobs"],
  "networking.k8s.io/v1": ["ingresses", "networkpolicies", "ingressclasses"],
  "rbac.authorization.k8s.io/v1": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
  "admissionregistration.k8s.io/v1": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
  "storage.k8s.io/v1": ["storageclasses", "csidrivers", "csinodes", "volumeattachments"],
};

function resourcesOf({ items }: Json, groupVersion: string): readonly string[] {
  const [group, version] = groupVersion.split("/");
  const found = items.find(({ metadata }: Json) => metadata.name === group);
  const { resources = [] } = found?.versions.find((each: Json) => each.version === version) ?? {};
  return resources.map(({ resource }: Json) => resource);
}

async function hasBuiltIn(at: TestNamespace, accept: string): Promise<void> {
  const groups = await at.api.send("GET /apis", { headers: { accept } });
  assert.equal(groups.status, 200);
  assert.match(groups.headers["content-type"] ?? "", /as=APIGroupDiscoveryList/);
  for (const [groupVersion, resources] of Object.entries(builtIn)) {
    const found = resourcesOf(groups.json, groupVersion);
    for (const resource of resources) assert.ok(found.includes(resource), `${groupVersion} ${resource}`);
  }
  const core = await at.api.send("GET /api", { headers: { accept } });
  const [{ versions }] = core.json.items;
  const names = versions[0].resources.map(({ resource }: Json) => resource);
  for (const name of ["pods", "services", "configmaps", "secrets", "namespaces", "nodes"])
    assert.ok(names.includes(name));
}

async function discoverByClient(at: TestNamespace): Promise<void> {
  await hasBuiltIn(at, AGGREGATED);
  const { headers } = await at.api.send("GET /apis", { headers: { accept: AGGREGATED } });
  assert.ok(headers.etag);
  const again = await at.api.send("GET /apis", { headers: { accept: AGGREGATED, "if-none-match": headers.etag } });
  // Definitions of other behaviours may have come between.
  assert.ok([200, 304].includes(again.status));
  assert.match(await at.run("api-resources --api-group=apps -o name"), /^deployments\.apps$/m);
}

async function discoverDefinition(at: TestNamespace): Promise<void> {
  await using _ = await define(at);
  await until("the definition in aggregated discovery", async () => {
    const { json } = await at.api.send("GET /apis", { headers: { accept: AGGREGATED } });
    return resourcesOf(json, `${groupOf(at)}/v1`).includes("widgets");
  });
  assert.equal(await at.run(`api-resources --api-group=${groupOf(at)} -o name`), `widgets.${groupOf(at)}\n`);
}

export const watches: Behaviours = {
  "Watchers should observe add, update, and delete watch notifications on configmaps": observeChanges,
  "Watchers should be able to start watching from a specific resource version": startFromVersion,
  "Watchers should be able to restart watching from the last resource version observed by the previous watch":
    restartWatch,
  "Watchers should observe an object deletion if it stops meeting the requirements of the selector": loseMatch,
  "Servers with support for API chunking should return chunks of results for list calls": returnChunks,
  "Servers with support for Table transformation should return a 406 for a backend which does not implement metadata":
    refuseTable,
  "Discovery should locate the groupVersion and a resource within each APIGroup": locateGroups,
  "AggregatedDiscovery should support aggregated discovery interface": discoverByClient,
  "AggregatedDiscovery should support aggregated discovery interface for CRDs": discoverDefinition,
  "AggregatedDiscovery should support raw aggregated discovery endpoint Accept headers": async (at) => {
    await hasBuiltIn(at, AGGREGATED);
    // As clients send it that know older servers.
    const older = AGGREGATED.replace("v=v2", "v=v2beta1");
    await hasBuiltIn(at, `${AGGREGATED},${older},application/json`);
  },
};
