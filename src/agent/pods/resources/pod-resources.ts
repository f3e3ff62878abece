/** What a whole pod asks for and may have. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import { podLimits, podRequests } from "../../../api/core/pod-spec/resources.ts";
import { quantityMilliValue, quantityValue } from "../../../api/meta/quantity.ts";
import { appContainers, initContainers } from "../pod-fields.ts";
import { parseMillis, parseUnits } from "./quantities.ts";

export type RequirementKind = "requests" | "limits";

/** Thousandths of a CPU; whole units of anything else. */
export function parseResource(name: string, quantity: string | undefined): number {
  return name === "cpu" ? parseMillis(quantity) : parseUnits(quantity);
}

/** What the pod has at its hungriest, with the overhead of its runtime class; a limit that nothing sets is 0. */
export function getPodResource(pod: Pod, side: RequirementKind, name: string): number {
  const amounts = (side === "requests" ? podRequests : podLimits)(pod, { includeOverhead: true });
  const quantity = amounts.get(name);
  if (quantity === undefined) return 0;
  return name === "cpu" ? quantityMilliValue(quantity) : quantityValue(quantity);
}

/** Every resource that some container of the pod requests, or its overhead. */
export function listRequestedResources(pod: Pod): readonly string[] {
  const all = [...initContainers(pod), ...appContainers(pod)].map((each) => each.resources?.requests);
  return [...new Set([...all, pod.spec?.overhead].flatMap((each) => Object.keys(each ?? {})))];
}

/** Whether each container, init containers included, has a limit of the resource. */
export function isLimitedEverywhere(pod: Pod, name: string): boolean {
  return [...initContainers(pod), ...appContainers(pod)].every(
    (each) => parseResource(name, each.resources?.limits?.[name]) > 0,
  );
}
