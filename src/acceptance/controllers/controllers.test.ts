import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { eventKind } from "../../api/core/event/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { Namespace } from "../../api/core/namespace/schema.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import type { ClusterRole } from "../../api/rbac/cluster-role/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { startInMemoryCluster, waitForObject } from "../../testing/apiserver/in-memory-cluster.ts";

function readyNode(name: string): Node {
  return {
    metadata: { name },
    status: {
      conditions: [{ type: "Ready", status: "True" }],
      allocatable: { cpu: "1", memory: "1Gi", pods: "10" },
      capacity: { cpu: "1", memory: "1Gi", pods: "10" },
    },
  };
}

function pod(name: string, spec: Partial<PodSpec> = {}): Pod {
  return { metadata: { name, namespace: "default" }, spec: { containers: [{ name: "a", image: "web:1" }], ...spec } };
}

async function addNode(client: Client, name: string): Promise<void> {
  const { metadata, status } = readyNode(name);
  await client.create(nodeKind, { metadata });
  await client.patch(nodeKind, { name }, "strategic", { status }, { subresource: "status" });
}

t.test("the scheduler binds a pending pod when a node becomes available", async (t) => {
  const client = await startInMemoryCluster(t);
  await client.create(podKind, pod("web"));
  const waiting = await waitForObject(
    client,
    podKind,
    "web",
    "default",
    (p) => (p?.status?.conditions ?? []).length > 0,
  );
  const condition = waiting?.status?.conditions?.[0];
  t.match(condition, { type: "PodScheduled", status: "False", reason: "Unschedulable" });
  t.equal(condition?.message, "no nodes available to schedule pods");
  await addNode(client, "shop-1");
  const bound = await waitForObject(client, podKind, "web", "default", (p) => Boolean(p?.spec?.nodeName));
  t.equal(bound?.spec?.nodeName, "shop-1");
  t.match(bound?.status?.conditions, [{ type: "PodScheduled", status: "True" }]);
});

t.test("the scheduler ignores pods of other schedulers, and reports why a pod is pending", async (t) => {
  const client = await startInMemoryCluster(t);
  await addNode(client, "shop-1");
  await waitForObject(client, nodeKind, "shop-1", undefined, (n) => (n?.spec?.taints ?? []).length === 0);
  const large = [{ name: "a", image: "web:1", resources: { requests: { cpu: "2" } } }];
  await client.create(podKind, pod("gated", { schedulingGates: [{ name: "wait" }] }));
  await client.create(podKind, pod("foreign", { schedulerName: "another" }));
  await client.create(podKind, pod("large", { containers: large }));
  const waiting = await waitForObject(
    client,
    podKind,
    "large",
    "default",
    (p) => (p?.status?.conditions ?? []).length > 0,
  );
  t.equal(
    waiting?.status?.conditions?.[0]?.message,
    "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found" +
      " for incoming pod.",
  );
  const isFailure = { fieldSelector: "reason=FailedScheduling", namespace: "default" };
  const { items } = await client.list(eventKind, isFailure);
  t.ok(items.length <= 1, "one event with a count");
  for (const name of ["gated", "foreign"]) {
    t.equal((await client.get(podKind, { name, namespace: "default" })).spec?.nodeName ?? "", "", name);
  }
});

t.test("the scheduler uses the resources of a deleted pod", async (t) => {
  const client = await startInMemoryCluster(t);
  await addNode(client, "shop-1");
  const whole = [{ name: "a", image: "web:1", resources: { requests: { cpu: "1" } } }];
  await client.create(podKind, pod("first", { containers: whole }));
  await waitForObject(client, podKind, "first", "default", (p) => Boolean(p?.spec?.nodeName));
  await client.create(podKind, pod("second", { containers: whole }));
  await waitForObject(client, podKind, "second", "default", (p) => (p?.status?.conditions ?? []).length > 0);
  await client.delete(podKind, { name: "first", namespace: "default" }, { gracePeriodSeconds: 0 });
  const bound = await waitForObject(client, podKind, "second", "default", (p) => Boolean(p?.spec?.nodeName));
  t.equal(bound?.spec?.nodeName, "shop-1");
});

t.test("the namespace controller deletes the objects of a deleted namespace, and reports remaining ones", async (t) => {
  const client = await startInMemoryCluster(t);
  const namespace = "shop";
  await client.create(namespaceKind, { metadata: { name: namespace } });
  await client.create(configMapKind, { metadata: { name: "plain", namespace } });
  await client.create(configMapKind, { metadata: { name: "held", namespace, finalizers: ["example.com/hold"] } });
  await client.delete(namespaceKind, { name: namespace });
  const remaining = (object: Namespace | undefined) => (object?.status?.conditions ?? []).length > 0;
  const held = await waitForObject(client, namespaceKind, namespace, undefined, remaining);
  t.equal(held?.status?.phase, "Terminating");
  t.match(held?.status?.conditions, [
    { type: "NamespaceDeletionDiscoveryFailure", status: "False", reason: "ResourcesDiscovered" },
    { type: "NamespaceDeletionGroupVersionParsingFailure", status: "False", reason: "ParsedGroupVersions" },
    { type: "NamespaceDeletionContentFailure", status: "False", reason: "ContentDeleted" },
    {
      type: "NamespaceContentRemaining",
      status: "True",
      reason: "SomeResourcesRemain",
      message: "Some resources are remaining: configmaps. has 1 resource instances",
    },
    {
      type: "NamespaceFinalizersRemaining",
      status: "True",
      reason: "SomeFinalizersRemain",
      message: "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
    },
  ]);
  await t.rejects(client.create(configMapKind, { metadata: { name: "late", namespace } }), { name: "StatusError" });
  const map = await client.get(configMapKind, { name: "held", namespace });
  await client.update(configMapKind, { ...map, metadata: { ...map.metadata, finalizers: [] } });
  await waitForObject(client, namespaceKind, namespace, undefined, (object) => object === undefined);
  const gone = await client.get(namespaceKind, { name: namespace }).catch((error: unknown) => error);
  t.ok(gone instanceof StatusError && gone.status.code === 404);
});

t.test("the aggregation controller aggregates the rules of selected roles", async (t) => {
  const client = await startInMemoryCluster(t);
  const rulesOf = (role: ClusterRole | undefined) => JSON.stringify(role?.rules ?? []);
  await waitForObject(client, clusterRoleKind, "view", undefined, (role) => rulesOf(role).includes("pods/log"));
  await waitForObject(client, clusterRoleKind, "admin", undefined, (role) => rulesOf(role).includes("rolebindings"));
  const labels = { "rbac.authorization.k8s.io/aggregate-to-view": "true" };
  const rules = [{ verbs: ["get"], apiGroups: ["example.com"], resources: ["widgets"] }];
  await client.create(clusterRoleKind, { metadata: { name: "widgets", labels }, rules });
  // Through intermediate aggregated roles.
  await waitForObject(client, clusterRoleKind, "admin", undefined, (role) => rulesOf(role).includes("widgets"));
  await client.delete(clusterRoleKind, { name: "widgets" });
  await waitForObject(client, clusterRoleKind, "admin", undefined, (role) => !rulesOf(role).includes("widgets"));
});
