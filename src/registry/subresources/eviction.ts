/**
 * The `eviction` subresource: a pod is deleted as far as its disruption budget allows. What a refusal says, and what
 * is taken from the budget, is as in Kubernetes: 429 where the client may try again.
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

/** Pods whose eviction a budget's controller has not seen yet. */
const DISRUPTED_PODS_MAX = 2000;
/** Seconds after which a budget that is being reckoned may be asked again. */
const RETRY_SECONDS = 10;
/** How often a pod that changes all the time is tried. */
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
  // Of the pod that goes nobody is asked: this is about its eviction.
  await runValidatingAdmission({ options: { admission } }, eviction, undefined);
  const pod = await evictWithoutBudget(pods, scope, name, options);
  if (pod === undefined) return;
  const guards = await matchingBudgets(budgets, scope, pod);
  if (guards.length > 1) {
    const why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    throw new StatusError(500, "", why);
  }
  const [budget] = guards;
  if (budget === undefined) return await addConditionAndDelete(pods, scope, pod, options);
  if (!isReady(pod) && canEvictUnhealthy(budget)) return await evictUnhealthy(pods, scope, pod, budget, options);
  const { dryRun } = options;
  const charge = { registry: budgets, scope, name: metadataOf(budget).name ?? "", options: { dryRun } };
  await guaranteedUpdate(charge, (current) => checkAndDecrement(budgets, current, name));
  await addConditionAndDelete(pods, scope, pod, options);
}

/** Resolves with the pod if its budget has a say. */
async function evictWithoutBudget(
  pods: Registry<Pod>,
  scope: Scope,
  name: string,
  options: DeleteOptions,
): Promise<Pod | undefined> {
  for (let attempt = 1; ; attempt++) {
    const { object: pod } = await get(pods, scope, name);
    if (!ignoresBudget(pod)) return pod;
    const asked = options.preconditions?.resourceVersion;
    // One that waits may begin to serve meanwhile; one that is over stays so.
    const pinned = asked ?? (isTerminal(pod) ? undefined : metadataOf(pod).resourceVersion);
    try {
      await addConditionAndDelete(pods, scope, pod, withPrecondition(options, pinned));
      return undefined;
    } catch (error) {
      if (!isConflict(error) || asked !== undefined || attempt === EVICTION_ATTEMPTS) throw error;
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

/** A pod that does not serve yet, or not any more. */
function ignoresBudget(pod: Pod): boolean {
  return isTerminal(pod) || pod.status?.phase === "Pending";
}

function isReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(({ type, status: state }) => type === "Ready" && state === "True");
}

/** What is not ready counts for nothing, as long as enough others are. */
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
  // Whatever a budget selects: a pod without labels is nobody's.
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

/** The budget with one disruption less. */
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
      conditions: setDisruptionAllowed(budgets, status.conditions ?? [], left > 0, generation),
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

/** The condition that tells whether there is anything left to take. */
const ALLOWED = "DisruptionAllowed";

function setDisruptionAllowed(
  budgets: Registry<PodDisruptionBudget>,
  conditions: Conditions,
  allowed: boolean,
  observedGeneration: number,
): Conditions {
  const old = conditions.find(({ type }) => type === ALLOWED);
  const status = allowed ? ("True" as const) : ("False" as const);
  const reason = allowed ? "SufficientPods" : "InsufficientPods";
  const lastTransitionTime = old?.status === status ? old.lastTransitionTime : budgets.timestamp();
  const condition = { type: ALLOWED, status, reason, message: "", observedGeneration, lastTransitionTime };
  return [...conditions.filter((one) => one !== old), condition];
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

/** A pod that has become ready meanwhile is not taken unasked. */
async function evictUnhealthy(
  pods: Registry<Pod>,
  scope: Scope,
  pod: Pod,
  budget: PodDisruptionBudget,
  options: DeleteOptions,
): Promise<void> {
  const asked = options.preconditions?.resourceVersion;
  try {
    await addConditionAndDelete(pods, scope, pod, withPrecondition(options, asked ?? metadataOf(pod).resourceVersion));
  } catch (error) {
    if (!isConflict(error) || asked !== undefined) throw error;
    throw stillProcessing(metadataOf(budget).name ?? "");
  }
}

/** The pod says why it goes before it does. */
async function addConditionAndDelete(
  pods: Registry<Pod>,
  scope: Scope,
  pod: Pod,
  options: DeleteOptions,
): Promise<void> {
  const name = metadataOf(pod).name ?? "";
  // Preconditions are about the pod as the client saw it, which the condition changes.
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
