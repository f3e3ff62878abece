/**
 * The `eviction` subresource: a pod is deleted as far as its disruption budget allows. What a refusal says, and what
 * is taken from the budget, is as in Kubernetes: 429 where the client may try again.
 */
import type { Pod, PodStatus } from "../api/core/pod.ts";
import { validateLabelSelector } from "../api/meta/label-selector-validation.ts";
import { matchesLabels, requirementsOf } from "../api/meta/selector.ts";
import type { Eviction } from "../api/policy/eviction.ts";
import type { PodDisruptionBudget } from "../api/policy/pod-disruption-budget.ts";
import { badRequest, forbidden, StatusError } from "../api/status.ts";
import { change } from "./change.ts";
import { type DeleteOptions, remove, removeObject } from "./delete.ts";
import { get } from "./get.ts";
import type { Registry, Scope } from "./registry.ts";
import { metadataOf } from "./write.ts";

/** Pods whose eviction a budget's controller has not seen yet. */
const UNCONFIRMED_MAX = 2000;
/** Seconds after which a budget that is being reckoned may be asked again. */
const RECKONING_SECONDS = 10;

/** Throws 400, 403, 404, 409 or 429. */
export async function evict(
  pods: Registry<Pod>,
  budgets: Registry<PodDisruptionBudget>,
  scope: Scope,
  name: string,
  eviction: Eviction,
  options: DeleteOptions,
): Promise<void> {
  if (eviction.metadata?.name !== name) throw badRequest("name in URL does not match name in Eviction object");
  const { object: pod } = await get(pods, scope, name);
  if (disruptsNothing(pod)) return await leave(pods, scope, pod, options);
  const guards = await budgetsOf(budgets, scope, pod);
  if (guards.length > 1) {
    const why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    throw new StatusError(500, "", why);
  }
  const [budget] = guards;
  if (budget === undefined) return await leave(pods, scope, pod, options);
  if (!isReady(pod) && mayLoseUnready(budget)) return await leaveUnready(pods, scope, pod, budget, options);
  await change(budgets, scope, metadataOf(budget).name ?? "", (current) => charged(budgets, current, name), {
    dryRun: options.dryRun,
  });
  await leave(pods, scope, pod, options);
}

/** A pod that does not serve yet, or not any more. */
function disruptsNothing({ metadata, status }: Pod): boolean {
  const phase = status?.phase ?? "";
  return metadata?.deletionTimestamp !== undefined || ["Pending", "Succeeded", "Failed"].includes(phase);
}

function isReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(({ type, status: state }) => type === "Ready" && state === "True");
}

/** What is not ready counts for nothing, as long as enough others are. */
function mayLoseUnready({ spec, status }: PodDisruptionBudget): boolean {
  if (spec?.unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {};
  return currentHealthy >= desiredHealthy && desiredHealthy > 0;
}

async function budgetsOf(
  budgets: Registry<PodDisruptionBudget>,
  scope: Scope,
  pod: Pod,
): Promise<readonly PodDisruptionBudget[]> {
  const cache = await budgets.fresh(scope);
  const { items } = cache.list(budgets.objects.prefix(scope.namespace));
  return items
    .map(({ object }) => object)
    .filter(({ spec }) => {
      const selector = spec?.selector;
      if (selector === undefined || validateLabelSelector(selector, "").length > 0) return false;
      return matchesLabels(requirementsOf(selector), pod.metadata?.labels);
    });
}

/** The budget with one disruption less. */
function charged(
  budgets: Registry<PodDisruptionBudget>,
  budget: PodDisruptionBudget,
  pod: string,
): PodDisruptionBudget {
  const { status } = budget;
  const { name = "", generation = 0 } = metadataOf(budget);
  const subject = { group: "policy", resource: "poddisruptionbudget", name };
  if (status === undefined || (status.observedGeneration ?? 0) < generation) throw stillReckoning(name);
  const { disruptionsAllowed, disruptedPods = {}, desiredHealthy, currentHealthy } = status;
  if (disruptionsAllowed < 0) throw forbidden(subject, "pdb disruptions allowed is negative");
  if (Object.keys(disruptedPods).length > UNCONFIRMED_MAX) {
    throw forbidden(subject, "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  }
  if (disruptionsAllowed === 0) {
    const needs = `needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
    throw tooManyRequests(`The disruption budget ${name} ${needs}`, 0);
  }
  return {
    ...budget,
    status: {
      ...status,
      disruptionsAllowed: disruptionsAllowed - 1,
      disruptedPods: { ...disruptedPods, [pod]: budgets.timestamp() },
      ...(disruptionsAllowed > 1
        ? {}
        : { conditions: withInsufficientPods(budgets, status.conditions ?? [], generation) }),
    },
  };
}

type Conditions = NonNullable<NonNullable<PodDisruptionBudget["status"]>["conditions"]>;

function withInsufficientPods(
  budgets: Registry<PodDisruptionBudget>,
  conditions: Conditions,
  observedGeneration: number,
): Conditions {
  const type = "DisruptionAllowed";
  const old = conditions.find((condition) => condition.type === type);
  const lastTransitionTime = old?.status === "False" ? old.lastTransitionTime : budgets.timestamp();
  const reason = "InsufficientPods";
  const condition = { type, status: "False" as const, reason, message: "", observedGeneration, lastTransitionTime };
  return [...conditions.filter((one) => one !== old), condition];
}

function stillReckoning(name: string): StatusError {
  const why = `The disruption budget ${name} is still being processed by the server.`;
  return tooManyRequests(why, RECKONING_SECONDS);
}

function tooManyRequests(why: string, retryAfterSeconds: number): StatusError {
  const message = "Cannot evict pod as it would violate the pod's disruption budget.";
  return new StatusError(429, "TooManyRequests", message, {
    details: {
      causes: [{ reason: "DisruptionBudget", message: why }],
      ...(retryAfterSeconds === 0 ? {} : { retryAfterSeconds }),
    },
  });
}

/** A pod that has become ready meanwhile is not taken unasked. */
async function leaveUnready(
  pods: Registry<Pod>,
  scope: Scope,
  pod: Pod,
  budget: PodDisruptionBudget,
  options: DeleteOptions,
): Promise<void> {
  const { resourceVersion } = metadataOf(pod);
  const asked = options.preconditions?.resourceVersion;
  const preconditions = { ...options.preconditions, resourceVersion: asked ?? resourceVersion };
  try {
    await leave(pods, scope, pod, { ...options, preconditions });
  } catch (error) {
    const moved = error instanceof StatusError && error.status.code === 409;
    if (!moved || asked !== undefined) throw error;
    throw stillReckoning(metadataOf(budget).name ?? "");
  }
}

/** The pod says why it goes before it does. */
async function leave(pods: Registry<Pod>, scope: Scope, pod: Pod, options: DeleteOptions): Promise<void> {
  const name = metadataOf(pod).name ?? "";
  // Preconditions are about the pod as the client saw it, which the condition changes.
  await removeObject(pods, scope, pod, { ...options, dryRun: true });
  if (options.dryRun === true) return;
  const { preconditions, ...rest } = options;
  await change(pods, scope, name, (current) => withCondition(pods, current), {
    ...(preconditions === undefined ? {} : { preconditions }),
  });
  await remove(pods, scope, name, {
    ...rest,
    ...(preconditions?.uid === undefined ? {} : { preconditions: { uid: preconditions.uid } }),
  });
}

function withCondition(pods: Registry<Pod>, pod: Pod): Pod {
  const type = "DisruptionTarget";
  const conditions: NonNullable<PodStatus["conditions"]> = pod.status?.conditions ?? [];
  const condition = {
    type,
    status: "True",
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
    lastTransitionTime: pods.timestamp(),
  };
  return {
    ...pod,
    status: { ...pod.status, conditions: [...conditions.filter((one) => one.type !== type), condition] },
  };
}
