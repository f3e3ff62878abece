import t from "tap";
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import { eventKind } from "../../api/core/event/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { podDisruptionBudgetKind } from "../../api/policy/pod-disruption-budget/kind.ts";
import type { PodDisruptionBudgetSpec } from "../../api/policy/pod-disruption-budget/schema.ts";
import type { Client } from "../../client/client.ts";
import { formatTime } from "../../schema/value/time.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { startController } from "../../testing/controllers/start-controller.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { passTime } from "../../testing/std/pass-time.ts";
import { runDisruptionController } from "./disruption-controller.ts";

const namespace = "default";
const labels = { app: "web" };
const selector = { matchLabels: labels };

async function startDisruptionController(t: Parameters<typeof startInMemoryCluster>[0]) {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: ["serviceaccount"] }, clock);
  startController(t, runDisruptionController, client, clock);
  await passTime(clock, 1000);
  return { client, clock };
}

async function createReadyPod(client: Client, clock: FakeClock, name: string, owner?: string): Promise<Pod> {
  const ownerReferences =
    owner === undefined
      ? undefined
      : [{ apiVersion: "batch/v1", kind: owner, name: "owner", uid: "1", controller: true, blockOwnerDeletion: true }];
  await client.create(podKind, {
    metadata: { name, namespace, labels, ownerReferences },
    spec: { containers: [{ name: "c", image: "web:1" }] },
  });
  const ready = { type: "Ready", status: "True", lastTransitionTime: formatTime(clock.now()) };
  const patch = { status: { phase: "Running", conditions: [ready] } };
  return await client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status" });
}

async function createBudget(client: Client, spec: PodDisruptionBudgetSpec): Promise<void> {
  await client.create(podDisruptionBudgetKind, { metadata: { name: "b", namespace }, spec: { selector, ...spec } });
}

async function eventsOf(client: Client): Promise<readonly string[]> {
  const { items } = await client.list(eventKind, { namespace });
  return items.map(({ reason, message }) => `${reason}: ${message}`);
}

t.test("a percentage of pods whose controller has no scale allows no disruption and reports why", async (t) => {
  const { client, clock } = await startDisruptionController(t);
  await createReadyPod(client, clock, "a", "Job");
  await createBudget(client, { minAvailable: "50%" });
  await passTime(clock, 1000);
  const { status } = await client.get(podDisruptionBudgetKind, { name: "b", namespace });
  t.match(status, {
    disruptionsAllowed: 0,
    conditions: [
      {
        type: "DisruptionAllowed",
        reason: "SyncFailed",
        message: "jobs.batch does not implement the scale subresource",
        // That of the status, which no sync has written yet.
        observedGeneration: undefined,
      },
    ],
  });
  const message =
    "Failed to calculate the number of expected pods: jobs.batch does not implement the scale subresource";
  t.ok((await eventsOf(client)).includes(`CalculateExpectedPodCountFailed: ${message}`));
});

t.test("an evicted pod that is not deleted within two minutes counts as healthy again", async (t) => {
  const { client, clock } = await startDisruptionController(t);
  for (const name of ["a", "b"]) await createReadyPod(client, clock, name);
  await createBudget(client, { minAvailable: 1 });
  await passTime(clock, 1000);
  const budget = await client.get(podDisruptionBudgetKind, { name: "b", namespace });
  const disruptedPods = { a: formatTime(clock.now()) };
  await client.updateStatus(podDisruptionBudgetKind, { ...budget, status: { ...budget.status!, disruptedPods } });
  await passTime(clock, 1000);
  const during = await client.get(podDisruptionBudgetKind, { name: "b", namespace });
  t.match(during.status, { currentHealthy: 1, disruptionsAllowed: 0, disruptedPods });
  await passTime(clock, 121_000);
  const { status } = await client.get(podDisruptionBudgetKind, { name: "b", namespace });
  t.match(status, { currentHealthy: 2, disruptionsAllowed: 1, disruptedPods: undefined });
  t.ok(
    (await eventsOf(client)).includes(
      "NotDeleted: Pod was expected by PDB default/default to be deleted but it wasn't",
    ),
  );
});

const conditions = [
  { reason: "EvictionByEvictionAPI", phase: "Running", after: "False" },
  { reason: "TerminationByKubelet", phase: "Running", after: "True" },
  { reason: "PreemptionByScheduler", phase: "Failed", after: "True" },
] as const;
for (const { reason, phase, after } of conditions) {
  t.test(`the condition ${reason} of a ${phase} pod is ${after} after two minutes`, async (t) => {
    const { client, clock } = await startDisruptionController(t);
    await createReadyPod(client, clock, "a");
    const target = { type: "DisruptionTarget", status: "True", reason, lastTransitionTime: formatTime(clock.now()) };
    const patch = { status: { phase, conditions: [target] } };
    await client.patch(podKind, { name: "a", namespace }, "strategic", patch, { subresource: "status" });
    await passTime(clock, 110_000);
    const statusOf = async (): Promise<string | undefined> => {
      const { status } = await client.get(podKind, { name: "a", namespace });
      return status?.conditions?.find(({ type }) => type === "DisruptionTarget")?.status;
    };
    t.equal(await statusOf(), "True");
    await passTime(clock, 15_000);
    t.equal(await statusOf(), after);
  });
}

t.test("a replica set whose deployment is gone counts with its own scale", async (t) => {
  const { client, clock } = await startDisruptionController(t);
  const gone = { apiVersion: "apps/v1", kind: "Deployment", name: "gone", uid: "2", controller: true };
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "web:1" }] } };
  const set = await client.create(replicaSetKind, {
    metadata: { name: "owner", namespace, ownerReferences: [gone] },
    spec: { replicas: 4, selector, template },
  });
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "owner", uid: set.metadata?.uid ?? "" };
  await client.create(podKind, {
    metadata: { name: "a", namespace, labels, ownerReferences: [{ ...owner, controller: true }] },
    spec: { containers: [{ name: "c", image: "web:1" }] },
  });
  await createBudget(client, { maxUnavailable: 1 });
  await passTime(clock, 1000);
  const { status } = await client.get(podDisruptionBudgetKind, { name: "b", namespace });
  t.match(status, { expectedPods: 4, desiredHealthy: 3 });
});

t.test("a budget with an expression as selector names it in the event about unmanaged pods", async (t) => {
  const { client, clock } = await startDisruptionController(t);
  await createReadyPod(client, clock, "a");
  const expressions = [{ key: "app", operator: "In" as const, values: ["web", "db"] }];
  await createBudget(client, { maxUnavailable: 1, selector: { matchExpressions: expressions } });
  await passTime(clock, 1000);
  const text =
    "MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:app,Operator:In,Values:[web db],},},}";
  t.ok((await eventsOf(client)).some((event) => event.startsWith("UnmanagedPods: ") && event.includes(text)));
});
