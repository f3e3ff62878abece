/**
 * The disruption controller: computes how many pods of each disruption budget may be evicted, which the eviction
 * subresource takes from. It also ends the condition `DisruptionTarget` of pods that nothing deleted.
 */

import { deploymentKind } from "../../api/apps/deployment/kind.ts";
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import { statefulSetKind } from "../../api/apps/stateful-set/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { replicationControllerKind } from "../../api/core/replication-controller/kind.ts";
import type { LabelSelector } from "../../api/meta/label-selector.ts";
import { matchesLabels, type Requirement, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { podDisruptionBudgetKind } from "../../api/policy/pod-disruption-budget/kind.ts";
import type { PodDisruptionBudget } from "../../api/policy/pod-disruption-budget/schema.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatTime } from "../../schema/value/time.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { isNotFoundOrConflict, statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { keyOf, objectReference, splitKey } from "../workload/object-keys.ts";
import { messageOf } from "../workload/pod-control.ts";
import { printSelector } from "../workload/print-selector.ts";
import { Scales } from "../workload/scales.ts";
import { calculateBudgetStatus, disruptedPodsOf, failedStatus } from "./budget-status.ts";
import { type ExpectedPods, expectedPods } from "./expected-pods.ts";

const BACKOFF = { initialMs: 5, maxMs: 1_000_000, jitter: 0 };
/** How long a pod may have the condition `DisruptionTarget` without being deleted. */
const STALE_CONDITION_MS = 2 * 60_000;
const DISRUPTION_TARGET = "DisruptionTarget";

export async function runDisruptionController(deps: ControllerDeps): Promise<void> {
  const { client, observer, kinds, clock, random, log, signal, informers } = deps;
  const budgets = informers.of(podDisruptionBudgetKind);
  const pods = informers.of(podKind);
  const sources = {
    deployments: informers.of(deploymentKind),
    replicaSets: informers.of(replicaSetKind),
    replicationControllers: informers.of(replicationControllerKind),
    statefulSets: informers.of(statefulSetKind),
    scales: new Scales({ client, observer, kinds, clock }),
  };
  const { scales: _, ...informed } = sources;
  const requirements = new RequirementCache();
  await using recorder = createEventRecorder({ client, clock, random, log, component: "controllermanager", qps: 0 });
  const onError = (key: string, error: unknown): void =>
    log.v(2)?.info("Failed to sync disruption budget, will retry", { key, error: String(error) });
  await using queue = createControllerQueue(deps, {
    name: "disruption",
    workers: 1,
    backoff: BACKOFF,
    sync: syncKey,
    onError,
  });
  await using staleConditions = createControllerQueue(
    { clock, random, queueMetrics: deps.queueMetrics },
    { name: "stale_pod_disruption", workers: 1, backoff: BACKOFF, sync: endStaleCondition, onError },
  );

  async function syncKey(key: string, stopping: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const budget = budgets.get(name, namespace);
    if (budget === undefined) return;
    try {
      await syncBudget(budget, stopping);
    } catch (error) {
      const isRetried = statusCodeOf(error) === 409 || stopping.aborted;
      if (isRetried) throw error;
      log.error("Failed to sync disruption budget", error, { key });
      const status = failedStatus(budget, messageOf(error), clock.now());
      await client.updateStatus(podDisruptionBudgetKind, { ...budget, status }, stopping);
    }
  }

  async function syncBudget(budget: PodDisruptionBudget, stopping: AbortSignal): Promise<void> {
    const about = objectReference(budget);
    const selected = await podsOf(budget);
    if (selected.length === 0) recorder.record(about, "Normal", "NoPods", "No matching pods found");
    let expected: ExpectedPods;
    try {
      expected = await expectedPods(budget, selected, sources, stopping);
    } catch (error) {
      const message = `Failed to calculate the number of expected pods: ${messageOf(error)}`;
      recorder.record(about, "Warning", "CalculateExpectedPodCountFailed", message);
      throw error;
    }
    if (expected.hasUnmanaged) {
      const selector = printSelector(budget.spec?.selector ?? {});
      const message =
        `Pods selected by this PodDisruptionBudget (selector: ${selector}) were found to be unmanaged. As a result, ` +
        "the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account " +
        'for these pods please set ".spec.minAvailable" field of the PDB to an integer value.';
      recorder.record(about, "Warning", "UnmanagedPods", message);
    }
    const now = clock.now();
    const { namespace } = budget.metadata ?? {};
    const disrupted = disruptedPodsOf(budget, selected, now);
    for (const pod of disrupted.expired) {
      // Kubernetes' text has the namespace in place of the name too.
      const message = `Pod was expected by PDB ${namespace}/${namespace} to be deleted but it wasn't`;
      recorder.record(objectReference(pod), "Warning", "NotDeleted", message);
    }
    const status = calculateBudgetStatus(budget, selected, expected, disrupted.pods, now);
    if (status !== undefined) await client.updateStatus(podDisruptionBudgetKind, { ...budget, status }, stopping);
    if (disrupted.nextMs !== undefined) queue.addAfter(keyOf(budget), disrupted.nextMs + 1);
  }

  /** An absent selector selects nothing, an empty one all pods. */
  async function podsOf({ metadata, spec }: PodDisruptionBudget): Promise<readonly Pod[]> {
    if (spec?.selector === undefined) return [];
    const parsed = requirements.get(spec.selector);
    const slice = new TimeSlice();
    const selected: Pod[] = [];
    for (const pod of [...pods.list()]) {
      if (pod.metadata?.namespace !== metadata?.namespace) continue;
      if (matchesLabels(parsed, pod.metadata?.labels)) selected.push(pod);
      // A selector may have thousands of requirements.
      if (slice.isOver) await slice.end();
    }
    return selected;
  }

  /** Each change of a pod is compared with all budgets of its namespace. */
  function budgetsOf({ metadata: { namespace, labels } = {} }: Pod): readonly PodDisruptionBudget[] {
    return [...budgets.list()].filter(
      ({ metadata, spec }) =>
        metadata?.namespace === namespace &&
        spec?.selector !== undefined &&
        matchesLabels(requirements.get(spec.selector), labels),
    );
  }

  function podChanged(pod: Pod): void {
    const matching = budgetsOf(pod);
    if (matching.length > 1) {
      const { namespace, name } = pod.metadata ?? {};
      const chosen = matching[0]?.metadata?.name;
      const whose = `Pod "${namespace}"/"${name}"`;
      const message = `${whose} matches multiple PodDisruptionBudgets.  Chose "${chosen}" arbitrarily.`;
      recorder.record(objectReference(pod), "Warning", "MultiplePodDisruptionBudgets", message);
    }
    for (const budget of matching) queue.add(keyOf(budget));
    const staleIn = untilStale(pod, clock.now());
    if (staleIn !== undefined) staleConditions.addAfter(keyOf(pod), staleIn);
  }

  async function endStaleCondition(key: string, stopping: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const pod = pods.get(name, namespace);
    const staleIn = pod === undefined ? undefined : untilStale(pod, clock.now());
    if (pod === undefined || staleIn === undefined) return;
    if (staleIn > 0) {
      staleConditions.addAfter(key, staleIn);
      return;
    }
    const condition = { type: DISRUPTION_TARGET, status: "False", lastTransitionTime: formatTime(clock.now()) };
    const { uid, resourceVersion } = pod.metadata ?? {};
    const patch = {
      metadata: { uid, resourceVersion },
      status: { conditions: [{ ...condition, reason: null, message: null }] },
    };
    try {
      await client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status", signal: stopping });
    } catch (error) {
      if (!isNotFoundOrConflict(error)) throw error;
    }
  }

  await waitForCacheSync([budgets, pods, ...Object.values(informed)], signal);
  using subscriptions = new DisposableStack();
  const add = (budget: PodDisruptionBudget): void => queue.add(keyOf(budget));
  subscriptions.defer(budgets.subscribe({ put: add, delete: add }));
  subscriptions.defer(
    pods.subscribe({
      put: (pod, before) => {
        if (before !== undefined && !deepEqual(before.metadata?.labels, pod.metadata?.labels)) {
          for (const budget of budgetsOf(before)) add(budget);
        }
        podChanged(pod);
      },
      delete: podChanged,
    }),
  );
  await waitForAbort(signal);
}

/** The requirements of the selectors of cached budgets, which may have thousands. */
class RequirementCache {
  readonly #bySelector = new WeakMap<LabelSelector, readonly Requirement[]>();

  get(selector: LabelSelector): readonly Requirement[] {
    let requirements = this.#bySelector.get(selector);
    if (requirements === undefined) {
      requirements = requirementsOf(selector);
      this.#bySelector.set(selector, requirements);
    }
    return requirements;
  }
}

/**
 * Milliseconds until the condition `DisruptionTarget` ends; undefined without it. Kubelets set it long before they
 * delete the pod.
 */
function untilStale({ metadata, status }: Pod, now: number): number | undefined {
  const condition = status?.conditions?.find(({ type }) => type === DISRUPTION_TARGET);
  if (metadata?.deletionTimestamp !== undefined || condition?.status !== "True") return undefined;
  if (condition.reason === "TerminationByKubelet") return undefined;
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return undefined;
  const since = condition.lastTransitionTime === undefined ? now : Date.parse(condition.lastTransitionTime);
  return Math.max(0, since + STALE_CONDITION_MS - now);
}
