/** Quality of service class of a pod, and the OOM score of its containers. */
import type { Container } from "../../../api/core/container/schema.ts";
import { type PodQosClass, qosClassOf } from "../../../api/core/pod/qos.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { parseUnits } from "./quantities.ts";

export type QosClass = PodQosClass;

export function getPodQosClass(pod: Pod): QosClass {
  return qosClassOf(pod.spec ?? { containers: [] });
}

/** Order in which the OOM killer kills containers: -997 last, 1000 first. */
export function computeOomScoreAdj(pod: Pod, container: Container, capacityBytes: number): number {
  const priority = pod.spec?.priority ?? 0;
  if (priority >= 2_000_000_000) return -997;
  switch (getPodQosClass(pod)) {
    case "Guaranteed":
      return -997;
    case "BestEffort":
      return 1000;
    case "Burstable": {
      const requested = parseUnits(container.resources?.requests?.memory);
      const adjusted = Math.floor(1000 - (1000 * requested) / Math.max(1, capacityBytes));
      if (adjusted < 1000 - 997 + 0) return 3;
      return adjusted === 1000 ? 999 : adjusted;
    }
  }
}
