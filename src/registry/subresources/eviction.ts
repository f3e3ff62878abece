/**
 * The `eviction` subresource deletes a pod if its disruption budget allows it. Errors and the update of the budget are
 * Kubernetes'; with a 429 the client may retry.
 */
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { validateLabelSelector } from "../../api/meta/validation/label-selector.ts";
import type { Eviction } from "../../api/policy/eviction.ts";
import type { PodDisruptionBudget } from "../../api/policy/pod-disruption-budget/schema.ts";
import { badRequest, forbidden, StatusError } from "../../api/status.ts";
import { type DeleteOptions, remove, removeExisting } from "../delete.ts";
import { get } from "../get.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { runValidatingAdmission } from "../write/admission.ts";
import { guaranteedUpdate } from "../write/guaranteed-update.ts";
import { metadataOf } from "../write/object-metadata.ts";

/** Evicted pods in the status of a budget that the disruption controller has not processed yet. */
const DISRUPTED_PODS_MAX = 2000;
/** Retry-After while the disruption controller has not processed the latest budget. */
const RETRY_SECONDS = 10;
/** Attempts to evict a pod that other writes keep changing. */
const EVICTION_ATTEMPTS = 20;

/** Throws 400, 403, 404, 409 or 429. */
export async function evict(
  pods: Registry<Pod>,
  budgets: Registry<PodDisruptionBudget>,
  scope: Scope,
  name: string,
  eviction: Eviction,
  { admission, ...options }: DeleteOptions,
): Promise<void> {
  if (eviction.metadata?.name !== name) throw badRequest("name in URL does not match name in Eviction object");
  // Admission plugins run for the eviction, not for the deletion of the pod.
  await runValidatingAdmission({ options: { admission } }, eviction, undefined);
  const pod = await evictWithoutBudget(pods, scope, name, options);
  if (pod === undefined) return;
  const matching = await matchingBudgets(budgets, scope, pod);
  if (matching.length > 1) {
    const why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    throw new StatusError(500, "", why);
  }
  const [budget] = matching;
  if (budget === undefined) return await addConditionAndDelete(pods, scope, pod, options);
  if (!isReady(pod) && canEvictUnhealthy(budget)) return await evictUnhealthy(pods, scope, pod, budget, options);
  const { dryRun } = options;
  const charge = { registry: budgets, scope, name: metadataOf(budget).name ?? "", options: { dryRun } };
  await guaranteedUpdate(charge, (current) => checkAndDecrement(budgets, current, name));
  await addConditionAndDelete(pods, scope, pod, options);
}

/** Evicts a pod that no budget protects; resolves with the pod otherwise. */
async function evictWithoutBudget(
  pods: Registry<Pod>,
  scope: Scope,
  name: string,
  options: DeleteOptions,
): Promise<Pod | undefined> {
  for (let attempt = 1; ; attempt++) {
    const { object: pod } = await get(pods, scope, name);
    if (!ignoresBudget(pod)) return pod;
    const resourceVersion = options.preconditions?.resourceVersion;
    // A pending pod may become ready meanwhile; a terminal one stays terminal.
    const pinned = resourceVersion ?? (isTerminal(pod) ? undefined : metadataOf(pod).resourceVersion);
    try {
      await addConditionAndDelete(pods, scope, pod, withPrecondition(options, pinned));
      return undefined;
    } catch (error) {
      if (!isConflict(error) || resourceVersion !== undefined || attempt === EVICTION_ATTEMPTS) throw error;
    }
  }
}

function withPrecondition(options: DeleteOptions, resourceVersion: string | undefined): DeleteOptions {
  return resourceVersion === undefined
    ? options
    : { ...options, preconditions: { ...options.preconditions, resourceVersion } };
}

function isConflict(error: unknown): boolean {
  return error instanceof StatusError && error.status.code === 409;
}

function isTerminal({ metadata, status }: Pod): boolean {
  return metadata?.deletionTimestamp !== undefined || status?.phase === "Succeeded" || status?.phase === "Failed";
}

/** Whether the pod is pending or terminal: its eviction disrupts nothing. */
function ignoresBudget(pod: Pod): boolean {
  return isTerminal(pod) || pod.status?.phase === "Pending";
}

function isReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(({ type, status: state }) => type === "Ready" && state === "True");
}

/** Whether a pod that is not ready may be evicted without charging the budget. */
function canEvictUnhealthy({ spec, status }: PodDisruptionBudget): boolean {
  if (spec?.unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {};
  return currentHealthy >= desiredHealthy && desiredHealthy > 0;
}

async function matchingBudgets(
  budgets: Registry<PodDisruptionBudget>,
  scope: Scope,
  pod: Pod,
): Promise<readonly PodDisruptionBudget[]> {
  // No budget applies to a pod without labels.
  if (Object.keys(pod.metadata?.labels ?? {}).length === 0) return [];
  const cache = await budgets.freshCache(scope);
  const { items } = cache.list(budgets.objects.prefix(scope.namespace));
  return items
    .map(({ object }) => object)
    .filter(({ spec }) => {
      const selector = spec?.selector;
      if (selector === undefined || validateLabelSelector(selector, "").length > 0) return false;
      return matchesLabels(requirementsOf(selector), pod.metadata?.labels);
    });
}

/** Takes one disruption from the budget. Throws a 403 or 429 when none is allowed. */
function checkAndDecrement(
  budgets: Registry<PodDisruptionBudget>,
  budget: PodDisruptionBudget,
  pod: string,
): PodDisruptionBudget {
  const { status } = budget;
  const { name = "", generation = 0 } = metadataOf(budget);
  const subject = { group: "policy", resource: "poddisruptionbudget", name };
  if (status === undefined || (status.observedGeneration ?? 0) < generation) throw stillProcessing(name);
  const { disruptionsAllowed, disruptedPods = {} } = status;
  if (disruptionsAllowed < 0) throw forbidden(subject, "pdb disruptions allowed is negative");
  if (Object.keys(disruptedPods).length > DISRUPTED_PODS_MAX) {
    throw forbidden(subject, "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  }
  if (disruptionsAllowed === 0) throw tooManyRequests(noDisruptionsReason(name, status), 0);
  const left = disruptionsAllowed - 1;
  return {
    ...budget,
    status: {
      ...status,
      disruptionsAllowed: left,
      disruptedPods: { ...disruptedPods, [pod]: budgets.timestamp() },
      ...(left > 0 ? {} : { conditions: forbidDisruption(budgets, status) }),
    },
  };
}

function noDisruptionsReason(name: string, { conditions = [], desiredHealthy, currentHealthy }: BudgetStatus): string {
  const failed = conditions.find(({ type, reason }) => type === ALLOWED && reason === "SyncFailed");
  if (failed === undefined) {
    return `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  }
  const why = `because it failed sync: ${failed.message}`;
  return `The disruption budget ${name} does not allow evicting pods currently ${why}`;
}

type BudgetStatus = NonNullable<PodDisruptionBudget["status"]>;
type Conditions = NonNullable<BudgetStatus["conditions"]>;

/** The condition that reports whether the budget allows a disruption. */
const ALLOWED = "DisruptionAllowed";

/** The conditions of a budget whose last allowed disruption was taken. */
function forbidDisruption(
  budgets: Registry<PodDisruptionBudget>,
  { conditions = [], observedGeneration }: BudgetStatus,
): Conditions {
  const old = conditions.find(({ type }) => type === ALLOWED);
  const lastTransitionTime = old?.status === "False" ? old.lastTransitionTime : budgets.timestamp();
  const condition = {
    type: ALLOWED,
    status: "False" as const,
    reason: "InsufficientPods",
    message: "",
    observedGeneration,
    lastTransitionTime,
  };
  return old === undefined ? [...conditions, condition] : conditions.map((one) => (one === old ? condition : one));
}

function stillProcessing(name: string): StatusError {
  const why = `The disruption budget ${name} is still being processed by the server.`;
  return tooManyRequests(why, RETRY_SECONDS);
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

/** Evicts a pod that is not ready, unless it has become ready meanwhile. */
async function evictUnhealthy(
  pods: Registry<Pod>,
  scope: Scope,
  pod: Pod,
  budget: PodDisruptionBudget,
  options: DeleteOptions,
): Promise<void> {
  const resourceVersion = options.preconditions?.resourceVersion;
  try {
    await addConditionAndDelete(
      pods,
      scope,
      pod,
      withPrecondition(options, resourceVersion ?? metadataOf(pod).resourceVersion),
    );
  } catch (error) {
    if (!isConflict(error) || resourceVersion !== undefined) throw error;
    throw stillProcessing(metadataOf(budget).name ?? "");
  }
}

/** Adds the DisruptionTarget condition to the pod, then deletes it. */
async function addConditionAndDelete(
  pods: Registry<Pod>,
  scope: Scope,
  pod: Pod,
  options: DeleteOptions,
): Promise<void> {
  const name = metadataOf(pod).name ?? "";
  // The condition changes the resourceVersion: the preconditions are checked before.
  await removeExisting(pods, scope, pod, { ...options, dryRun: true });
  if (options.dryRun === true) return;
  const { preconditions, ...rest } = options;
  const request = { registry: pods, scope, name, options: { preconditions } };
  await guaranteedUpdate(request, (current) => addDisruptionTarget(pods, current));
  await remove(pods, scope, name, {
    ...rest,
    ...(preconditions?.uid === undefined ? {} : { preconditions: { uid: preconditions.uid } }),
  });
}

function addDisruptionTarget(pods: Registry<Pod>, pod: Pod): Pod {
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
