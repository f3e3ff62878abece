/** What a whole pod asks for and may have. */
import type { Container } from "../../api/core/container.ts";
import type { Pod } from "../../api/core/pod.ts";
import { bytes, milliCpu } from "./amounts.ts";
import { appContainers, initContainers, isSidecar } from "./pod-fields.ts";

export type Side = "requests" | "limits";

/** Thousandths of a CPU; whole units of anything else. */
export function resourceAmount(name: string, quantity: string | undefined): number {
  return name === "cpu" ? milliCpu(quantity) : bytes(quantity);
}

/**
 * What the pod has at its hungriest: all containers together, or one init container beside the sidecars before it; and
 * the overhead of its runtime class. A limit that nothing sets stays 0, overhead or not.
 */
export function podAmount(pod: Pod, side: Side, name: string): number {
  const of = (container: Container): number => resourceAmount(name, container.resources?.[side]?.[name]);
  let sidecars = 0;
  let peak = 0;
  for (const container of initContainers(pod)) {
    if (isSidecar(container)) sidecars += of(container);
    else peak = Math.max(peak, sidecars + of(container));
  }
  const steady = appContainers(pod).reduce((total, each) => total + of(each), sidecars);
  const sum = Math.max(peak, steady);
  const overhead = resourceAmount(name, pod.spec?.overhead?.[name]);
  return side === "limits" && sum === 0 ? 0 : sum + overhead;
}

/** Every resource that some container of the pod requests, or its overhead. */
export function requestedNames(pod: Pod): readonly string[] {
  const all = [...initContainers(pod), ...appContainers(pod)].map((each) => each.resources?.requests);
  return [...new Set([...all, pod.spec?.overhead].flatMap((each) => Object.keys(each ?? {})))];
}

/** Whether each container, init containers included, has a limit of the resource. */
export function isLimited(pod: Pod, name: string): boolean {
  return [...initContainers(pod), ...appContainers(pod)].every(
    (each) => resourceAmount(name, each.resources?.limits?.[name]) > 0,
  );
}
