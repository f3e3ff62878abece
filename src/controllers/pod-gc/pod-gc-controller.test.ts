import t from "tap";
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { objectsOf, syncOnce } from "../../testing/controllers/sync-once.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { passTime } from "../../testing/std/pass-time.ts";
import type { ControllerDeps } from "../controller.ts";
import { runPodGcController, surplusFinished } from "./pod-gc-controller.ts";

const namespace = "default";
const HOLD = ["example.com/hold"];

async function startPodGc(t: Parameters<typeof startInMemoryCluster>[0], terminatedPodGcThreshold = 12_500) {
  const clock = new FakeClock();
  const config = {
    embeddedControllers: ["podgc", "serviceaccount"],
    controllerOptions: { terminatedPodGcThreshold },
  };
  const client = await startInMemoryCluster(t, config, clock);
  await passTime(clock, 100);
  return { client, clock };
}

async function createPod(client: Client, name: string, nodeName: string, phase?: string): Promise<void> {
  const spec = { nodeName, containers: [{ name: "c", image: "web:1" }] };
  await client.create(podKind, { metadata: { name, namespace, finalizers: HOLD }, spec });
  if (phase !== undefined) {
    await client.patch(podKind, { name, namespace }, "merge", { status: { phase } }, { subresource: "status" });
  }
}

async function stateOf(client: Client, name: string): Promise<string> {
  const { metadata, status } = await client.get(podKind, { name, namespace });
  const condition = status?.conditions?.find(({ type }) => type === "DisruptionTarget");
  const isMarked = metadata?.deletionTimestamp !== undefined;
  return [status?.phase, isMarked ? "deleted" : "kept", condition?.reason ?? "", condition?.message ?? ""].join(" ");
}

t.test("pods of a node that does not exist fail and are deleted after a quarantine of 40 s", async (t) => {
  const { client, clock } = await startPodGc(t);
  await client.create(nodeKind, { metadata: { name: "n1" } });
  await createPod(client, "stays", "n1", "Running");
  await createPod(client, "goes", "gone", "Running");
  await createPod(client, "done", "gone", "Succeeded");
  await passTime(clock, 55_000);
  t.equal(await stateOf(client, "goes"), "Running kept  ");
  await passTime(clock, 45_000);
  t.equal(await stateOf(client, "goes"), "Failed deleted DeletionByPodGC PodGC: node no longer exists");
  t.equal(await stateOf(client, "done"), "Succeeded deleted  ");
  t.equal(await stateOf(client, "stays"), "Running kept  ");
});

t.test("a node that comes back within the quarantine keeps its pods", async (t) => {
  const { client, clock } = await startPodGc(t);
  await createPod(client, "p", "n1", "Running");
  await passTime(clock, 45_000);
  await client.create(nodeKind, { metadata: { name: "n1" } });
  await passTime(clock, 25_000);
  await client.delete(nodeKind, { name: "n1" });
  await passTime(clock, 45_000);
  t.equal(await stateOf(client, "p"), "Running kept  ");
});

t.test("terminating pods of a stopped node with the taint out-of-service are deleted", async (t) => {
  const { client, clock } = await startPodGc(t);
  const taints = [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" as const }];
  for (const [name, status] of [
    ["up", "True"],
    ["down", "Unknown"],
  ] as const) {
    await client.create(nodeKind, { metadata: { name }, spec: { taints } });
    const patch = { status: { conditions: [{ type: "Ready", status }] } };
    await client.patch(nodeKind, { name }, "strategic", patch, { subresource: "status" });
    await createPod(client, `on-${name}`, name, "Running");
    await client.delete(podKind, { name: `on-${name}`, namespace });
  }
  await passTime(clock, 21_000);
  t.equal(await stateOf(client, "on-up"), "Running deleted  ");
  t.equal(await stateOf(client, "on-down"), "Failed deleted  ");
});

t.test("finished pods beyond the threshold are deleted, the oldest first", async (t) => {
  const { client, clock } = await startPodGc(t, 1);
  await client.create(nodeKind, { metadata: { name: "n1" } });
  for (const name of ["a", "b"]) {
    await createPod(client, name, "n1", "Succeeded");
    await passTime(clock, 1000);
  }
  await createPod(client, "c", "n1", "Running");
  await passTime(clock, 20_000);
  t.match(await stateOf(client, "a"), /deleted/);
  t.match(await stateOf(client, "b"), /kept/);
  t.match(await stateOf(client, "c"), /kept/);
});

t.test("evicted pods are deleted before others; a threshold of 0 keeps all", async (t) => {
  const pod = (name: string, second: number, reason?: string): Pod => ({
    metadata: { name, creationTimestamp: `2026-01-01T00:00:0${second}Z` },
    status: { phase: "Failed", reason },
  });
  const pods = [pod("old", 1), pod("evicted", 3, "Evicted"), pod("new", 2)];
  const namesOf = (threshold: number): unknown =>
    surplusFinished(pods, threshold).map(({ metadata }) => metadata?.name);
  t.strictSame(namesOf(1), ["evicted", "old"]);
  t.strictSame(namesOf(3), []);
  t.strictSame(namesOf(0), []);
});

t.test("deleted pods and failed deletions are counted by namespace and reason", async (t) => {
  const registry = new MetricRegistry();
  const run = (deps: ControllerDeps): Promise<void> => runPodGcController({ ...deps, registry });
  const pod = (name: string): Pod => ({
    metadata: { name, namespace, uid: name, deletionTimestamp: "2026-01-01T00:00:00Z" },
    status: { phase: "Failed" },
  });
  const fail = (write: string): void => {
    if (write === "delete pod b") throw new Error("refused");
  };
  await syncOnce(run, objectsOf(nodeKind), [objectsOf(podKind, pod("a"), pod("b"))], { advanceMs: 20_000, fail });
  const lines = formatMetrics([registry], "prometheus").split("\n");
  const labels = `{namespace="${namespace}",reason="unscheduled"}`;
  t.ok(lines.includes(`pod_gc_collector_force_delete_pods_total${labels} 2`), lines.join("\n"));
  t.ok(lines.includes(`pod_gc_collector_force_delete_pod_errors_total${labels} 1`));
});
