/** Quota usage of pods: their number, and the compute resources of pods that have not terminated. */

import { qosClassOf } from "../../../api/core/pod/qos.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { hasPodLevelResources, podLimits, podRequests } from "../../../api/core/pod-spec/resources.ts";
import { isExtendedResource, isHugePages, isKubernetesResource } from "../../../api/core/resources/names.ts";
import { ONE_UNIT, parseResourceList, type ResourceQuantities } from "../../../api/core/resources/quantities.ts";
import type { Quantity } from "../../../api/meta/quantity.ts";
import type { Evaluator } from "./evaluator.ts";
import { matchesScopeValue, type Scope } from "./scopes.ts";

const COMPUTE_RESOURCES = ["cpu", "memory", "ephemeral-storage"];
const REQUESTS = "requests.";
const LIMITS = "limits.";
const RESOURCES = [
  "count/pods",
  "pods",
  ...COMPUTE_RESOURCES.flatMap((name) => [name, REQUESTS + name, LIMITS + name]),
];
/** If a quota limits one of these, each container must specify it, as in Kubernetes. */
const REQUIRED_RESOURCES = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

export const podEvaluator: Evaluator<Pod> = {
  handles: (operation, subresource) =>
    (operation === "CREATE" && subresource === "") || (operation === "UPDATE" && subresource === "resize"),
  isUniform: false,
  counts: (resource) =>
    RESOURCES.includes(resource) ||
    isHugePages(resource) ||
    isHugePages(withoutRequests(resource)) ||
    (resource.startsWith(REQUESTS) && !isKubernetesResource(resource)),
  usage: (pod) => usageOf(pod),
  matchesScope,
  missing({ spec }, limited) {
    // Containers of a pod with resources of its own need none.
    if (hasPodLevelResources(spec)) return undefined;
    const required = limited.filter((name) => REQUIRED_RESOURCES.includes(name)).sort();
    const silent = new Map<string, Set<string>>();
    for (const { name, resources } of [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])]) {
      const specified = computeUsage(parseResourceList(resources?.requests), parseResourceList(resources?.limits));
      for (const resource of required.filter((each) => !specified.has(each))) {
        silent.set(resource, (silent.get(resource) ?? new Set()).add(name));
      }
    }
    if (silent.size === 0) return undefined;
    const texts = required.flatMap((resource) => {
      const names = silent.get(resource);
      return names === undefined ? [] : [`${resource} for: ${[...names].sort().join(",")}`];
    });
    return `must specify ${[...new Set(texts)].join("; ")}`;
  },
};

function withoutRequests(resource: string): string {
  return resource.startsWith(REQUESTS) ? resource.slice(REQUESTS.length) : "";
}

function usageOf(pod: Pod): ResourceQuantities {
  const counted: readonly [string, Quantity][] = [["count/pods", ONE_UNIT]];
  if (isTerminated(pod)) return new Map(counted);
  const options = { useStatusResources: true, includeOverhead: true };
  const used = computeUsage(podRequests(pod, options), podLimits(pod, options));
  return new Map([...counted, ["pods", ONE_UNIT], ...used]);
}

/** The usage under the resource names of quotas. */
function computeUsage(requests: ResourceQuantities, limits: ResourceQuantities): ResourceQuantities {
  const used = new Map<string, Quantity>();
  for (const [name, amount] of requests) {
    if (COMPUTE_RESOURCES.includes(name) || isHugePages(name)) used.set(name, amount).set(REQUESTS + name, amount);
    else if (isExtendedResource(name)) used.set(REQUESTS + name, amount);
  }
  for (const [name, amount] of limits) if (COMPUTE_RESOURCES.includes(name)) used.set(LIMITS + name, amount);
  return used;
}

/** Terminated pods do not use compute resources. */
export function isTerminated({ status }: Pod): boolean {
  return status?.phase === "Failed" || status?.phase === "Succeeded";
}

function matchesScope(scope: Scope, pod: Pod): boolean {
  const { activeDeadlineSeconds, priorityClassName } = pod.spec ?? {};
  const isTerminating = activeDeadlineSeconds !== undefined && Number(activeDeadlineSeconds) >= 0;
  const isBestEffort = (pod.status?.qosClass ?? qosClassOf(pod.spec ?? { containers: [] })) === "BestEffort";
  switch (scope.scopeName) {
    case "Terminating":
      return isTerminating;
    case "NotTerminating":
      return !isTerminating;
    case "BestEffort":
      return isBestEffort;
    case "NotBestEffort":
      return !isBestEffort;
    case "PriorityClass":
      return matchesScopeValue(scope, priorityClassName || undefined);
    case "CrossNamespacePodAffinity":
      return hasCrossNamespaceAffinity(pod);
    default:
      return false;
  }
}

/** Whether affinity terms select pods of other namespaces. */
function hasCrossNamespaceAffinity({ spec }: Pod): boolean {
  const { podAffinity, podAntiAffinity } = spec?.affinity ?? {};
  return [podAffinity, podAntiAffinity].some((affinity) => {
    const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    return [...required, ...preferred.map(({ podAffinityTerm }) => podAffinityTerm)].some(
      ({ namespaces = [], namespaceSelector }) => namespaces.length > 0 || namespaceSelector !== undefined,
    );
  });
}
