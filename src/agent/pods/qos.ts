/** Quality of service: what Kubernetes derives from requests and limits. */
import type { Container } from "../../api/core/container.ts";
import type { Pod } from "../../api/core/pod.ts";
import { amount, bytes } from "./amounts.ts";
import { allContainers } from "./pod-fields.ts";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

const measured = ["cpu", "memory"] as const;

export function qosClass(pod: Pod): QosClass {
  let any = false;
  let guaranteed = true;
  for (const { spec } of allContainers(pod)) {
    for (const name of measured) {
      const limit = spec.resources?.limits?.[name];
      const request = spec.resources?.requests?.[name] ?? limit;
      if (isPositive(limit) || isPositive(request)) any = true;
      if (!isPositive(limit) || amount(limit) !== amount(request)) guaranteed = false;
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

function isPositive(quantity: string | undefined): quantity is string {
  return quantity !== undefined && amount(quantity) > 0;
}

/** How readily the kernel ends the container when memory runs out: -997 never first, 1000 first. */
export function oomScoreAdj(pod: Pod, container: Container, capacityBytes: number): number {
  const priority = pod.spec?.priority ?? 0;
  if (priority >= 2_000_000_000) return -997;
  switch (qosClass(pod)) {
    case "Guaranteed":
      return -997;
    case "BestEffort":
      return 1000;
    case "Burstable": {
      const requested = bytes(container.resources?.requests?.memory);
      const adjusted = Math.floor(1000 - (1000 * requested) / Math.max(1, capacityBytes));
      if (adjusted < 1000 - 997 + 0) return 3;
      return adjusted === 1000 ? 999 : adjusted;
    }
  }
}
