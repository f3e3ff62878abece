/** Requests and limits of a whole pod. */
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

/** The effective request or limit of the pod, with the overhead of its RuntimeClass; 0 for a limit that is not set. */
export function getPodResource(pod: Pod, kind: RequirementKind, name: string): number {
  const totals = (kind === "requests" ? podRequests : podLimits)(pod, { includeOverhead: true });
  const quantity = totals.get(name);
  if (quantity === undefined) return 0;
  return name === "cpu" ? quantityMilliValue(quantity) : quantityValue(quantity);
}

/** Every resource that the pod as a whole or some container requests, or its overhead. */
export function listRequestedResources(pod: Pod): readonly string[] {
  const all = [...initContainers(pod), ...appContainers(pod), pod.spec].map((each) => each?.resources?.requests);
  return [...new Set([...all, pod.spec?.overhead].flatMap((each) => Object.keys(each ?? {})))];
}

/** Whether the pod as a whole, or each container, init containers included, has a limit of the resource. */
export function isLimitedEverywhere(pod: Pod, name: string): boolean {
  if (parseResource(name, pod.spec?.resources?.limits?.[name]) > 0) return true;
  return [...initContainers(pod), ...appContainers(pod)].every(
    (each) => parseResource(name, each.resources?.limits?.[name]) > 0,
  );
}
