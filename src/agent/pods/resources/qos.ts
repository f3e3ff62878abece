/** Quality of service class of a pod, and the OOM score of its containers. */
import type { Container } from "../../../api/core/container/schema.ts";
import { type PodQosClass, qosClassOf } from "../../../api/core/pod/qos.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { containerRequests } from "../../../api/core/pod-spec/resources.ts";
import { quantityValue } from "../../../api/meta/quantity.ts";
import { appContainers, initContainers, isCritical, isSidecar } from "../pod-fields.ts";
import { parseUnits } from "./quantities.ts";

export type QosClass = PodQosClass;

export function getPodQosClass(pod: Pod): QosClass {
  return qosClassOf(pod.spec ?? { containers: [] });
}

/** Order in which the OOM killer kills containers: -997 last, 1000 first. */
export function computeOomScoreAdj(pod: Pod, container: Container, capacityBytes: number): number {
  if (isNodeCritical(pod)) return -997;
  switch (getPodQosClass(pod)) {
    case "Guaranteed":
      return -997;
    case "BestEffort":
      return 1000;
    case "Burstable": {
      // What the pod as a whole requests above its containers counts in equal parts.
      const shared = computeSharedRequest(pod);
      const own = memoryRequestOf(container) + shared;
      // A sidecar ends after the container that the OOM killer would kill last.
      const requested = isSidecar(container)
        ? Math.max(own, Math.min(...appContainers(pod).map(memoryRequestOf)) + shared)
        : own;
      const adjusted = 1000 - Math.floor((1000 * requested) / Math.max(1, capacityBytes));
      if (adjusted < 3) return 3;
      return adjusted === 1000 ? 999 : adjusted;
    }
  }
}

function memoryRequestOf({ resources }: Container): number {
  return parseUnits(resources?.requests?.memory);
}

function computeSharedRequest(pod: Pod): number {
  const requested = pod.spec?.resources?.requests?.memory;
  if (requested === undefined) return 0;
  const ofContainers = containerRequests(pod).get("memory");
  const rest = parseUnits(requested) - (ofContainers === undefined ? 0 : quantityValue(ofContainers));
  return Math.trunc(rest / (appContainers(pod).length + initContainers(pod).length));
}

/** Kubernetes: a critical pod of this class; system-cluster-critical is not enough. */
function isNodeCritical(pod: Pod): boolean {
  return isCritical(pod) && pod.spec?.priorityClassName === "system-node-critical";
}
