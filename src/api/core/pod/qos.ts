/** Quality of service classes, by which the kubelet ranks pods for eviction. */
import { parseQuantity } from "../../meta/quantity.ts";
import { hasPodLevelResources } from "../pod-spec/resources.ts";
import type { PodSpec } from "../pod-spec/schema.ts";
import type { ResourceRequirements } from "../resources/schema.ts";

export type PodQosClass = "Guaranteed" | "Burstable" | "BestEffort";

/**
 * Guaranteed: limits equal requests for CPU and memory of every container, or of the pod as a whole where the spec has
 * resources for it. BestEffort: no requests or limits.
 */
export function qosClassOf(spec: PodSpec): PodQosClass {
  let hasResources = false;
  let guaranteed = true;
  for (const resources of listRequirements(spec)) {
    for (const name of ["cpu", "memory"]) {
      const limit = nanosOf(resources?.limits?.[name]);
      const request = resources?.requests?.[name] === undefined ? limit : nanosOf(resources.requests[name]);
      if (limit > 0n || request > 0n) hasResources = true;
      if (limit === 0n || limit !== request) guaranteed = false;
    }
  }
  if (!hasResources) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

function* listRequirements(spec: PodSpec): Generator<ResourceRequirements | undefined> {
  if (hasPodLevelResources(spec)) {
    yield spec.resources;
    return;
  }
  for (const { resources } of spec.containers) yield resources;
  for (const { resources } of spec.initContainers ?? []) yield resources;
}

function nanosOf(amount: string | undefined): bigint {
  return amount === undefined ? 0n : (parseQuantity(amount)?.nanos ?? 0n);
}
