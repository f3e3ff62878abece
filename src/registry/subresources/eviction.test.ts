import t from "tap";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { podDisruptionBudgetKind } from "../../api/policy/pod-disruption-budget/kind.ts";
import type { PodDisruptionBudget } from "../../api/policy/pod-disruption-budget/schema.ts";
import { StatusError } from "../../api/status.ts";
import { type Fixture, fixture } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import type { DeleteOptions } from "../delete.ts";
import { get } from "../get.ts";
import { evict } from "./eviction.ts";

type Status = NonNullable<PodDisruptionBudget["status"]>;

async function running(f: Fixture, ready: boolean): Promise<void> {
  const pods = f.registries.of(podKind);
  const spec = { nodeName: "n1", containers: [{ name: "a", image: "web:1" }] };
  const pod: Pod = { metadata: { name: "web", labels: { app: "web" } }, spec };
  const made = await create(pods, f.scope(), pod);
  const conditions = [{ type: "Ready", status: ready ? "True" : "False" }];
  const key = pods.key(f.scope(), "web");
  await pods.objects.guaranteedUpdate(key, () => ({ ...made, status: { phase: "Running", conditions } }));
}

async function guarded(f: Fixture, status: Partial<Status>, name = "guard"): Promise<void> {
  const budgets = f.registries.of(podDisruptionBudgetKind);
  const made = await create(budgets, f.scope(), {
    metadata: { name },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
  });
  const none = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0, observedGeneration: 1 };
  await budgets.objects.guaranteedUpdate(budgets.key(f.scope(), name), () => ({
    ...made,
    status: { ...none, ...status },
  }));
}

async function evicted(f: Fixture, options: DeleteOptions = {}): Promise<StatusError["status"] | undefined> {
  const [pods, budgets] = [f.registries.of(podKind), f.registries.of(podDisruptionBudgetKind)];
  try {
    await evict(pods, budgets, f.scope(), "web", { metadata: { name: "web" } }, options);
    return undefined;
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
}

t.test("evict() charges the budget and sets the DisruptionTarget condition", async (t) => {
  await using f = fixture();
  await running(f, true);
  await guarded(f, { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 });
  t.equal(await evicted(f), undefined);
  const { object: pod } = await get(f.registries.of(podKind), f.scope(), "web");
  t.ok(pod.metadata?.deletionTimestamp);
  t.match(pod.status?.conditions?.at(-1), { type: "DisruptionTarget", reason: "EvictionByEvictionAPI" });
  const { object: budget } = await get(f.registries.of(podDisruptionBudgetKind), f.scope(), "guard");
  t.equal(budget.status?.disruptionsAllowed, 0);
  t.same(Object.keys(budget.status?.disruptedPods ?? {}), ["web"]);
});

t.test("evict() changes the condition of a budget only with its last disruption", async (t) => {
  const allowed = {
    type: "DisruptionAllowed",
    status: "True",
    reason: "SufficientPods",
    message: "",
    lastTransitionTime: "2025-01-01T00:00:00Z",
  } as const;
  const other = { ...allowed, type: "Other" };
  for (const disruptionsAllowed of [2, 1]) {
    await using f = fixture();
    await running(f, true);
    await guarded(f, { disruptionsAllowed, conditions: [allowed, other] });
    t.equal(await evicted(f), undefined);
    const { object: budget } = await get(f.registries.of(podDisruptionBudgetKind), f.scope(), "guard");
    const [first, second] = budget.status?.conditions ?? [];
    if (disruptionsAllowed === 2) t.same(first, allowed);
    else t.match(first, { status: "False", reason: "InsufficientPods", observedGeneration: 1 });
    t.same(second, other);
  }
});

t.test("evict() fails with 429 when the budget allows no disruption", async (t) => {
  await using f = fixture();
  await running(f, true);
  await guarded(f, { currentHealthy: 1, desiredHealthy: 1 });
  const message = "The disruption budget guard needs 1 healthy pods and has 1 currently";
  t.match(await evicted(f), { code: 429, details: { causes: [{ reason: "DisruptionBudget", message }] } });
  await guarded(f, {}, "second");
  t.match(await evicted(f), { code: 500, message: /more than one PodDisruptionBudget/ });
});

t.test("evict() fails with 429 and Retry-After while the budget is not processed", async (t) => {
  await using f = fixture();
  await running(f, true);
  await guarded(f, { observedGeneration: 0 });
  t.match(await evicted(f), { code: 429, details: { retryAfterSeconds: 10 } });
});

t.test("evict() does not charge the budget for a pod that is not ready when enough others are", async (t) => {
  await using f = fixture();
  await running(f, false);
  await guarded(f, { currentHealthy: 1, desiredHealthy: 1 });
  t.match(await evicted(f, { preconditions: { uid: "other" } }), { code: 429 });
  t.equal(await evicted(f, { dryRun: true }), undefined);
  t.equal((await get(f.registries.of(podKind), f.scope(), "web")).object.metadata?.deletionTimestamp, undefined);
  t.equal(await evicted(f), undefined);
});

t.test("evict() ignores budgets for pending and terminal pods, and retries when the pod changes", async (t) => {
  await using f = fixture();
  await running(f, true);
  await guarded(f, { currentHealthy: 1, desiredHealthy: 1 });
  const pods = f.registries.of(podKind);
  const key = pods.key(f.scope(), "web");
  const phase = async (name: "Pending" | "Succeeded"): Promise<void> => {
    await pods.objects.guaranteedUpdate(key, (pod) => ({ ...pod, status: { ...pod.status, phase: name } }));
  };
  t.match(await evicted(f, { dryRun: true }), { code: 429 });
  await phase("Pending");
  const { resourceVersion } = (await get(pods, f.scope(), "web")).object.metadata ?? {};
  await phase("Pending");
  await pods.objects.guaranteedUpdate(key, (pod) => ({
    ...pod,
    metadata: { ...pod.metadata, labels: { app: "web" } },
  }));
  t.equal(await evicted(f, { dryRun: true }), undefined);
  await pods.objects.guaranteedUpdate(key, (pod) => ({ ...pod, status: { ...pod.status, message: "changed" } }));
  t.match(await evicted(f, { preconditions: { resourceVersion } }), { code: 409 });
  await phase("Succeeded");
  t.equal(await evicted(f), undefined);
});

t.test("evict() reports why the budget failed to sync", async (t) => {
  await using f = fixture();
  await running(f, true);
  const lastTransitionTime = "2025-01-01T00:00:00Z";
  const failed = { type: "DisruptionAllowed", status: "False", reason: "SyncFailed", message: "boom" } as const;
  await guarded(f, { conditions: [{ ...failed, lastTransitionTime }] });
  const message = "The disruption budget guard does not allow evicting pods currently because it failed sync: boom";
  t.match(await evicted(f), { details: { causes: [{ message }] } });
});

t.test("evict() applies no budget to pods without labels", async (t) => {
  await using f = fixture();
  await running(f, true);
  const pods = f.registries.of(podKind);
  await pods.objects.guaranteedUpdate(pods.key(f.scope(), "web"), ({ metadata, ...pod }) => {
    const { labels: _, ...rest } = metadata ?? {};
    return { ...pod, metadata: rest };
  });
  const budgets = f.registries.of(podDisruptionBudgetKind);
  await create(budgets, f.scope(), { metadata: { name: "all" }, spec: { minAvailable: 1, selector: {} } });
  t.equal(await evicted(f), undefined);
});
