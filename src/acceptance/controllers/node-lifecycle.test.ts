import t from "tap";
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import { eventKind } from "../../api/core/event/kind.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node, NodeCondition, Taint } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { formatMicroTime, formatTime } from "../../schema/value/time.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";

const lifecycle = { embeddedControllers: ["node-lifecycle"] };
const namespace = "default";
const holder = "kube-node-lease";

async function beat(client: Client, clock: FakeClock, name: string, ready = "True"): Promise<void> {
  await client.get(nodeKind, { name }).catch(() => client.create(nodeKind, { metadata: { name } }));
  const now = formatTime(clock.now());
  const conditions = [
    { type: "Ready", status: ready, reason: "R", message: "", lastHeartbeatTime: now, lastTransitionTime: now },
    { type: "MemoryPressure", status: "False", reason: "R", message: "", lastHeartbeatTime: now },
  ];
  await client.patch(nodeKind, { name }, "strategic", { status: { conditions } }, { subresource: "status" });
}

async function renew(client: Client, clock: FakeClock, name: string): Promise<void> {
  const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime: formatMicroTime(clock.now()) };
  const known = await client.get(leaseKind, { name, namespace: holder }).catch(() => undefined);
  if (known === undefined) await client.create(leaseKind, { metadata: { name, namespace: holder }, spec });
  else await client.update(leaseKind, { ...known, spec });
}

async function boundPod(client: Client, name: string, node: string, spec: Partial<PodSpec> = {}): Promise<void> {
  const containers = [{ name: "a", image: "web:1" }];
  await client.create(podKind, { metadata: { name, namespace }, spec: { containers, nodeName: node, ...spec } });
  const conditions = [{ type: "Ready", status: "True" }];
  await client.patch(podKind, { name, namespace }, "strategic", { status: { conditions } }, { subresource: "status" });
}

async function podState(client: Client, name: string): Promise<"there" | "leaving" | "gone"> {
  try {
    const { metadata } = await client.get(podKind, { name, namespace });
    return metadata?.deletionTimestamp === undefined ? "there" : "leaving";
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 404) return "gone";
    throw error;
  }
}

const short = (taints: readonly Taint[] = []): readonly string[] =>
  taints.map(({ key, effect }) => `${key.replace("node.kubernetes.io/", "")}:${effect}`).sort();

const taintsOf = async (client: Client, name: string): Promise<readonly string[]> =>
  short((await client.get(nodeKind, { name })).spec?.taints);

const conditionOf = (node: Node, type: string): NodeCondition | undefined =>
  node.status?.conditions?.find((condition) => condition.type === type);

t.test("a node without heartbeats becomes Unknown, and Ready again after one", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, lifecycle, clock);
  await beat(client, clock, "a");
  await beat(client, clock, "b");
  for (let second = 0; second < 48; second += 12) {
    await clock.advance(12_000);
    await beat(client, clock, "b");
  }
  t.equal(conditionOf(await client.get(nodeKind, { name: "a" }), "Ready")?.status, "True");
  t.same(await taintsOf(client, "a"), []);
  await clock.advance(3_000);
  const silent = await client.get(nodeKind, { name: "a" });
  t.match(conditionOf(silent, "Ready"), {
    status: "Unknown",
    reason: "NodeStatusUnknown",
    message: "Kubelet stopped posting node status.",
  });
  t.match(conditionOf(silent, "MemoryPressure"), { status: "Unknown" });
  t.match(conditionOf(silent, "PIDPressure"), { status: "Unknown", reason: "NodeStatusNeverUpdated" });
  await until("the node has both taints", async () => (await taintsOf(client, "a")).length === 2);
  t.same(await taintsOf(client, "a"), ["unreachable:NoExecute", "unreachable:NoSchedule"]);
  t.same(await taintsOf(client, "b"), []);
  await beat(client, clock, "a");
  await clock.advance(1_000);
  await until("the taints are removed", async () => (await taintsOf(client, "a")).length === 0);
  const { items } = await client.list(eventKind, { namespace, fieldSelector: "involvedObject.name=a" });
  t.same(items.map(({ reason }) => reason).sort(), ["NodeNotReady", "RegisteredNode"]);
});

t.test("a renewed lease keeps a node Ready", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, lifecycle, clock);
  await beat(client, clock, "a");
  for (let attempt = 0; attempt < 12; attempt++) {
    await renew(client, clock, "a");
    await clock.advance(10_000);
  }
  t.equal(conditionOf(await client.get(nodeKind, { name: "a" }), "Ready")?.status, "True");
  await clock.advance(41_000);
  t.equal(conditionOf(await client.get(nodeKind, { name: "a" }), "Ready")?.status, "Unknown");
});

t.test("a node without any heartbeat becomes Unknown after a minute", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, lifecycle, clock);
  await client.create(nodeKind, { metadata: { name: "mute" } });
  await clock.advance(59_000);
  t.equal((await client.get(nodeKind, { name: "mute" })).status?.conditions, undefined);
  await clock.advance(2_000);
  t.match(conditionOf(await client.get(nodeKind, { name: "mute" }), "Ready"), { reason: "NodeStatusNeverUpdated" });
});

t.test("conditions and cordons taint nodes, and other taints stay", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, lifecycle, clock);
  const own: Taint = { key: "dedicated", value: "db", effect: "NoSchedule" };
  await client.create(nodeKind, { metadata: { name: "a" }, spec: { unschedulable: true, taints: [own] } });
  const pressed = ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];
  const conditions = pressed.map((type) => ({ type, status: "True" }));
  conditions.push({ type: "Ready", status: "True" });
  await client.patch(nodeKind, { name: "a" }, "strategic", { status: { conditions } }, { subresource: "status" });
  await clock.advance(1_000);
  const expected = ["disk-pressure", "memory-pressure", "network-unavailable", "pid-pressure", "unschedulable"];
  t.same(await taintsOf(client, "a"), ["dedicated:NoSchedule", ...expected.map((key) => `${key}:NoSchedule`)]);
  const better = pressed.map((type) => ({ type, status: "False" }));
  await client.patch(
    nodeKind,
    { name: "a" },
    "strategic",
    { status: { conditions: better } },
    { subresource: "status" },
  );
  await client.patch(nodeKind, { name: "a" }, "merge", { spec: { unschedulable: false } });
  await clock.advance(1_000);
  t.same((await client.get(nodeKind, { name: "a" })).spec?.taints, [own]);
});

t.test("pods of a lost node are evicted after their tolerationSeconds", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, lifecycle, clock);
  await beat(client, clock, "good");
  await beat(client, clock, "bad");
  await boundPod(client, "usual", "bad");
  await boundPod(client, "patient", "bad", { tolerations: [{ operator: "Exists" }] });
  const toleration = { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" } as const;
  await boundPod(client, "hasty", "bad", { tolerations: [{ ...toleration, tolerationSeconds: 5 }] });
  await boundPod(client, "elsewhere", "good");
  const run = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 5) {
      await beat(client, clock, "good");
      await clock.advance(5_000);
    }
  };
  await run(55);
  const usual = await client.get(podKind, { name: "usual", namespace });
  t.match(usual.status?.conditions, [{ type: "Ready", status: "False" }], "the pod is not ready at once");
  await run(10);
  t.equal(await podState(client, "hasty"), "leaving");
  const { status } = await client.get(podKind, { name: "hasty", namespace });
  t.match(
    status?.conditions?.find(({ type }) => type === "DisruptionTarget"),
    { status: "True", reason: "DeletionByTaintManager", message: "Taint manager: deleting due to NoExecute taint" },
  );
  t.equal(await podState(client, "usual"), "there");
  await run(300);
  t.equal(await podState(client, "usual"), "leaving");
  t.equal(await podState(client, "patient"), "there");
  t.equal(await podState(client, "elsewhere"), "there");
});

t.test("pods stay when their node becomes ready in time", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, lifecycle, clock);
  await beat(client, clock, "good");
  await beat(client, clock, "bad");
  await boundPod(client, "usual", "bad");
  for (let second = 0; second < 600; second += 10) {
    await beat(client, clock, "good");
    if (second >= 200) await beat(client, clock, "bad");
    await clock.advance(10_000);
  }
  t.equal(await podState(client, "usual"), "there");
});

t.test("pods that do not tolerate a user's NoExecute taint are evicted at once", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, lifecycle, clock);
  await beat(client, clock, "a");
  await boundPod(client, "usual", "a");
  await boundPod(client, "tolerant", "a", { tolerations: [{ key: "maintenance", operator: "Exists" }] });
  const taints: Taint[] = [{ key: "maintenance", effect: "NoExecute" }];
  await client.patch(nodeKind, { name: "a" }, "merge", { spec: { taints } });
  await clock.advance(1_000);
  t.equal(await podState(client, "usual"), "leaving");
  t.equal(await podState(client, "tolerant"), "there");
  await boundPod(client, "late", "a");
  await clock.advance(1_000);
  t.equal(await podState(client, "late"), "leaving", "pods that are created later too");
});

t.test("no pod is evicted when no node is ready", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, lifecycle, clock);
  for (const name of ["a", "b"]) await beat(client, clock, name);
  await boundPod(client, "usual", "a");
  for (let second = 0; second < 600; second += 10) await clock.advance(10_000);
  for (const name of ["a", "b"]) t.same(await taintsOf(client, name), ["unreachable:NoSchedule"]);
  t.equal(await podState(client, "usual"), "there");
});

t.test("pods of lost nodes are evicted one node after the other", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, lifecycle, clock);
  const names = ["a", "b", "good-1", "good-2", "good-3"];
  for (const name of names) await beat(client, clock, name);
  const lost = async (): Promise<number> => {
    const { items } = await client.list(nodeKind);
    return items.filter(({ spec }) => short(spec?.taints).includes("unreachable:NoExecute")).length;
  };
  const run = async (seconds: number): Promise<void> => {
    for (const name of names.slice(2)) await beat(client, clock, name);
    await clock.advance(seconds * 1_000);
  };
  await run(25);
  await run(26);
  t.equal(await lost(), 1);
  await run(8);
  t.equal(await lost(), 1);
  await run(3);
  t.equal(await lost(), 2);
});

t.test("without the controller nodes keep their conditions", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: ["namespace"] }, clock);
  await beat(client, clock, "a");
  await clock.advance(600_000);
  t.equal(conditionOf(await client.get(nodeKind, { name: "a" }), "Ready")?.status, "True");
  t.same(await taintsOf(client, "a"), ["not-ready:NoSchedule"], "the taint of a new node stays");
});

t.test("a new node has one not-ready:NoSchedule taint, under either alias", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: [] }, clock);
  const own: Taint = { key: "node.svc.io/not-ready", effect: "NoSchedule" };
  const driving: Taint = { key: "node.kubernetes.io/not-ready", effect: "NoExecute" };
  await client.create(nodeKind, { metadata: { name: "a" }, spec: { taints: [own] } });
  await client.create(nodeKind, { metadata: { name: "b" }, spec: { taints: [driving] } });
  t.same((await client.get(nodeKind, { name: "a" })).spec?.taints, [own]);
  t.same((await client.get(nodeKind, { name: "b" })).spec?.taints, [driving, { ...driving, effect: "NoSchedule" }]);
});
