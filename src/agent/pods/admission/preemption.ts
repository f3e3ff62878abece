/** Selects the pods to preempt for a critical pod: few, and those of the lowest QoS class. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import { isCritical } from "../pod-fields.ts";
import { getPodResource } from "../resources/pod-resources.ts";
import { getPodQosClass, type QosClass } from "../resources/qos.ts";
import type { Shortage } from "./admission-checks.ts";

/** Throws, with Kubernetes' text, when preempting all candidates would not be enough. */
export function selectVictims(pod: Pod, others: readonly Pod[], shortages: readonly Shortage[]): readonly Pod[] {
  const candidates = others.filter((each) => canPreempt(pod, each));
  const left = computeRemainingShortages(shortages, candidates);
  if (left.length > 0) throw new Error(`no set of running pods found to reclaim resources: ${formatShortages(left)}`);
  const of = (qos: QosClass): readonly Pod[] => candidates.filter((each) => getPodQosClass(each) === qos);
  const [bestEffort, burstable, guaranteed] = [of("BestEffort"), of("Burstable"), of("Guaranteed")];
  const fromGuaranteed = pickVictims(guaranteed, computeRemainingShortages(shortages, [...bestEffort, ...burstable]));
  const fromBurstable = pickVictims(
    burstable,
    computeRemainingShortages(shortages, [...bestEffort, ...fromGuaranteed]),
  );
  const fromBestEffort = pickVictims(
    bestEffort,
    computeRemainingShortages(shortages, [...fromBurstable, ...fromGuaranteed]),
  );
  return [...fromBestEffort, ...fromBurstable, ...fromGuaranteed];
}

function canPreempt(pod: Pod, other: Pod): boolean {
  if (isCritical(pod) && !isCritical(other)) return true;
  const [own, its] = [pod.spec?.priority, other.spec?.priority];
  return own !== undefined && its !== undefined && own > its;
}

/** What is still short without these pods. */
function computeRemainingShortages(shortages: readonly Shortage[], pods: readonly Pod[]): readonly Shortage[] {
  return shortages
    .map(({ resource, quantity }) => ({
      resource,
      quantity: pods.reduce((left, pod) => left - getRequest(pod, resource), quantity),
    }))
    .filter(({ quantity }) => quantity > 0);
}

function getRequest(pod: Pod, resource: string): number {
  return resource === "pods" ? 1 : getPodResource(pod, "requests", resource);
}

/** Picks one pod after the other: the one that leaves the least shortage; of equals the one with smaller requests. */
function pickVictims(pods: readonly Pod[], shortages: readonly Shortage[]): readonly Pod[] {
  const rest = [...pods];
  const chosen: Pod[] = [];
  for (let left = shortages; left.length > 0; left = computeRemainingShortages(shortages, chosen)) {
    const [best] = rest.toSorted((a, b) => distance(a, left) - distance(b, left) || compareRequests(a, b));
    if (best === undefined) return chosen;
    rest.splice(rest.indexOf(best), 1);
    chosen.push(best);
  }
  return chosen;
}

function distance(pod: Pod, shortages: readonly Shortage[]): number {
  return shortages.reduce(
    (sum, { resource, quantity }) => sum + (Math.max(0, quantity - getRequest(pod, resource)) / quantity) ** 2,
    0,
  );
}

function compareRequests(a: Pod, b: Pod): number {
  return getRequest(a, "memory") - getRequest(b, "memory") || getRequest(a, "cpu") - getRequest(b, "cpu");
}

function formatShortages(shortages: readonly Shortage[]): string {
  return `[${shortages.map(({ resource, quantity }) => `(res: ${resource}, q: ${quantity}), `).join("")}]`;
}
