import t from "tap";
import { createCustomKind } from "../../api/apiextensions/custom-resource/kind.ts";
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import { eventKind } from "../../api/core/event/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import type { OwnerReference } from "../../api/meta/object-meta.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import type { Client } from "../../client/client.ts";
import { systemClock } from "../../std/time/clock.ts";
import { startInMemoryCluster, waitForObject } from "../../testing/apiserver/in-memory-cluster.ts";

const namespace = "default";
const collector = { embeddedControllers: ["garbage-collector"] };
const isGone = (object: ApiObject | undefined): boolean => object === undefined;

function owned(
  { apiVersion = "", kind = "", metadata }: ApiObject,
  more: Partial<OwnerReference> = {},
): OwnerReference {
  return { apiVersion, kind, name: metadata?.name ?? "", uid: metadata?.uid ?? "", ...more };
}

async function map(client: Client, name: string, metadata: ConfigMap["metadata"] = {}): Promise<ConfigMap> {
  return await client.create(configMapKind, { metadata: { name, namespace, ...metadata } });
}

const widgets: CustomResourceDefinition = {
  metadata: { name: "widgets.example.com" },
  spec: {
    group: "example.com",
    names: { plural: "widgets", singular: "widget", kind: "Widget" },
    scope: "Namespaced",
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
  },
};

/** Creates a ReplicaSet with two pods. */
async function shop(client: Client, finalizers: readonly string[] = []): Promise<ReplicaSet> {
  const labels = { app: "shop" };
  const spec = { containers: [{ name: "a", image: "web:1" }] };
  const template = { metadata: { labels }, spec };
  const set: ReplicaSet = {
    metadata: { name: "shop", namespace },
    spec: { replicas: 2, selector: { matchLabels: labels }, template },
  };
  const created = await client.create(replicaSetKind, set);
  const ownerReferences = [owned(created, { controller: true, blockOwnerDeletion: true })];
  for (const name of ["shop-1", "shop-2"]) {
    const pod: Pod = { metadata: { name, namespace, labels, ownerReferences, finalizers }, spec };
    await client.create(podKind, pod);
  }
  return created;
}

t.test("dependents are deleted after their owner", async (t) => {
  const client = await startInMemoryCluster(t, collector);
  await shop(client);
  await client.delete(replicaSetKind, { name: "shop", namespace });
  await t.rejects(
    client.get(replicaSetKind, { name: "shop", namespace }),
    { message: /not found/ },
    "the owner is deleted at once",
  );
  await waitForObject(client, podKind, "shop-1", namespace, isGone);
  await waitForObject(client, podKind, "shop-2", namespace, isGone);
});

t.test("an owner that is deleted in the foreground is deleted after its dependents", async (t) => {
  const client = await startInMemoryCluster(t, collector);
  await shop(client, ["example.com/hold"]);
  await client.delete(replicaSetKind, { name: "shop", namespace }, { propagationPolicy: "Foreground" });
  const isLeaving = (pod: Pod | undefined) => pod?.metadata?.deletionTimestamp !== undefined;
  for (const name of ["shop-1", "shop-2"]) {
    const waiting = await client.get(replicaSetKind, { name: "shop", namespace });
    t.same(waiting.metadata?.finalizers, ["foregroundDeletion"], `waits for ${name}`);
    const pod = await waitForObject(client, podKind, name, namespace, isLeaving);
    await client.patch(podKind, { name, namespace }, "merge", { metadata: { finalizers: [] } });
    t.ok(pod);
  }
  await waitForObject(client, replicaSetKind, "shop", namespace, isGone);
});

t.test("foreground deletion waits for blocking dependents only", async (t) => {
  const client = await startInMemoryCluster(t, collector);
  const owner = await map(client, "owner");
  await map(client, "free", { ownerReferences: [owned(owner)], finalizers: ["example.com/hold"] });
  await client.delete(configMapKind, { name: "owner", namespace }, { propagationPolicy: "Foreground" });
  await waitForObject(client, configMapKind, "owner", namespace, isGone);
  await map(client, "alone");
  await client.delete(configMapKind, { name: "alone", namespace }, { propagationPolicy: "Foreground" });
  await waitForObject(client, configMapKind, "alone", namespace, isGone);
});

t.test("dependents of an owner that is deleted with orphan stay", async (t) => {
  const client = await startInMemoryCluster(t, collector);
  await shop(client);
  await client.delete(replicaSetKind, { name: "shop", namespace }, { propagationPolicy: "Orphan" });
  await waitForObject(client, replicaSetKind, "shop", namespace, isGone);
  for (const name of ["shop-1", "shop-2"]) {
    const { metadata } = await client.get(podKind, { name, namespace });
    t.same(metadata?.ownerReferences ?? [], []);
    t.equal(metadata?.deletionTimestamp, undefined);
  }
});

t.test("dependents of dependents are deleted", async (t) => {
  const client = await startInMemoryCluster(t, collector);
  for (const propagationPolicy of ["Background", "Foreground"] as const) {
    const grandmother = await map(client, "grandmother");
    const mother = await map(client, "mother", {
      ownerReferences: [owned(grandmother, { blockOwnerDeletion: true })],
    });
    await map(client, "child", { ownerReferences: [owned(mother, { blockOwnerDeletion: true })] });
    await client.delete(configMapKind, { name: "grandmother", namespace }, { propagationPolicy });
    for (const name of ["child", "mother", "grandmother"])
      await waitForObject(client, configMapKind, name, namespace, isGone);
  }
});

t.test("objects that own each other are deleted", async (t) => {
  const client = await startInMemoryCluster(t, collector);
  const first = await map(client, "first");
  const second = await map(client, "second", { ownerReferences: [owned(first, { blockOwnerDeletion: true })] });
  const ownerReferences = [owned(second, { blockOwnerDeletion: true })];
  await client.patch(configMapKind, { name: "first", namespace }, "merge", { metadata: { ownerReferences } });
  await client.delete(configMapKind, { name: "first", namespace }, { propagationPolicy: "Foreground" });
  for (const name of ["first", "second"]) await waitForObject(client, configMapKind, name, namespace, isGone);
});

t.test("an object with another owner stays, without the reference to the deleted owner", async (t) => {
  const client = await startInMemoryCluster(t, collector);
  const [first, second] = [await map(client, "first"), await map(client, "second")];
  await map(client, "child", { ownerReferences: [owned(first), owned(second)] });
  await client.delete(configMapKind, { name: "first", namespace });
  const left = await waitForObject(client, configMapKind, "child", namespace, (child) => {
    return child?.metadata?.ownerReferences?.length === 1;
  });
  t.equal(left?.metadata?.ownerReferences?.[0]?.name, "second");
});

t.test("references to missing owners and across namespaces do not keep objects", async (t) => {
  const client = await startInMemoryCluster(t, collector);
  await client.create(namespaceKind, { metadata: { name: "other" } });
  const owner = await map(client, "owner");
  const absentOwner = { ...owned(owner), uid: "00000000-0000-4000-8000-000000000000" };
  await map(client, "late", { ownerReferences: [absentOwner] });
  await waitForObject(client, configMapKind, "late", namespace, isGone);
  const namesake = { ...owned(owner), name: "another" };
  await map(client, "misled", { ownerReferences: [namesake] });
  await waitForObject(client, configMapKind, "misled", namespace, isGone);
  await map(client, "known", { ownerReferences: [owned(owner)] });
  const metadata = { name: "far", namespace: "other", ownerReferences: [owned(owner)] };
  await client.create(configMapKind, { metadata });
  await waitForObject(client, configMapKind, "far", "other", isGone);
  const recordedEvents = async () => (await client.list(eventKind, { namespace: "other" })).items;
  while ((await recordedEvents()).length === 0) await systemClock.sleep(10);
  t.match(await recordedEvents(), [
    { reason: "OwnerRefInvalidNamespace", message: /ownerRef \[v1\/ConfigMap, namespace: other/ },
  ]);
  t.ok(await client.get(configMapKind, { name: "known", namespace }), "an object with a valid reference stays");
});

t.test(
  "objects with owners of unknown kinds, and cluster-scoped objects with namespaced owners, are not deleted",
  async (t) => {
    const client = await startInMemoryCluster(t, collector);
    const owner = await map(client, "owner");
    const unknown = { apiVersion: "example.com/v1", kind: "Widget", name: "w", uid: "w-1" };
    await map(client, "of-widget", { ownerReferences: [unknown] });
    await client.create(clusterRoleKind, { metadata: { name: "wide", ownerReferences: [owned(owner)] } });
    // Objects are processed in their order.
    await map(client, "late", { ownerReferences: [{ ...owned(owner), uid: "missing" }] });
    await waitForObject(client, configMapKind, "late", namespace, isGone);
    t.ok(await client.get(configMapKind, { name: "of-widget", namespace }));
    t.ok(await client.get(clusterRoleKind, { name: "wide" }));
  },
);

t.test("owners with the other alias of a group are found", async (t) => {
  const client = await startInMemoryCluster(t, collector);
  const role = await client.create(clusterRoleKind, { metadata: { name: "wide" } });
  const reference = { ...owned(role), apiVersion: "rbac.authorization.k8s.io/v1" };
  await map(client, "child", { ownerReferences: [reference] });
  await map(client, "late", { ownerReferences: [{ ...reference, uid: "missing" }] });
  await waitForObject(client, configMapKind, "late", namespace, isGone);
  t.ok(await client.get(configMapKind, { name: "child", namespace }));
  await client.delete(clusterRoleKind, { name: "wide" });
  await waitForObject(client, configMapKind, "child", namespace, isGone);
});

t.test("custom resources can be owners and dependents", async (t) => {
  const client = await startInMemoryCluster(t, collector);
  const definition = await client.create(customResourceDefinitionKind, widgets);
  const { name = "" } = definition.metadata ?? {};
  await waitForObject(client, customResourceDefinitionKind, name, undefined, (found) => {
    return (found?.status?.conditions ?? []).some(({ type, status }) => type === "Established" && status === "True");
  });
  const widget = createCustomKind(definition, "v1");
  const made = async (name: string): Promise<ApiObject> => {
    const object = await client.create(widget, { metadata: { name, namespace } });
    const ownerReferences = [{ ...owned(object, { blockOwnerDeletion: true }), apiVersion: "example.com/v1" }];
    await map(client, `of-${name}`, { ownerReferences });
    return object;
  };
  await made("plain");
  await client.delete(widget, { name: "plain", namespace });
  await waitForObject(client, configMapKind, "of-plain", namespace, isGone);
  await made("awaited");
  await client.delete(widget, { name: "awaited", namespace }, { propagationPolicy: "Foreground" });
  await waitForObject(client, widget, "awaited", namespace, isGone);
  await t.rejects(client.get(configMapKind, { name: "of-awaited", namespace }), { message: /not found/ });
  await made("left");
  await client.delete(widget, { name: "left", namespace }, { propagationPolicy: "Orphan" });
  await waitForObject(client, widget, "left", namespace, isGone);
  t.same((await client.get(configMapKind, { name: "of-left", namespace })).metadata?.ownerReferences ?? [], []);
  const owner = await map(client, "owner");
  await client.create(widget, { metadata: { name: "child", namespace, ownerReferences: [owned(owner)] } });
  await client.delete(configMapKind, { name: "owner", namespace });
  await waitForObject(client, widget, "child", namespace, isGone);
  await made("last");
  await client.delete(customResourceDefinitionKind, { name });
  await waitForObject(client, configMapKind, "of-last", namespace, isGone);
});

t.test("without the garbage collector no finalizers are set, and dependents stay", async (t) => {
  const client = await startInMemoryCluster(t, { embeddedControllers: [] });
  await shop(client);
  await client.delete(replicaSetKind, { name: "shop", namespace }, { propagationPolicy: "Foreground" });
  await t.rejects(client.get(replicaSetKind, { name: "shop", namespace }), { message: /not found/ });
  t.equal((await client.list(podKind, { namespace })).items.length, 2);
});
