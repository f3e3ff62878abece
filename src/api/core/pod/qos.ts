/** Quality of service: how a pod's requests and limits rank it when memory runs short. */
import { parseQuantity } from "../../meta/quantity.ts";
import type { PodSpec } from "../pod-spec/schema.ts";

export type PodQosClass = "Guaranteed" | "Burstable" | "BestEffort";

/** Guaranteed: every container's limits equal its requests for CPU and memory. BestEffort: none asks for anything. */
export function qosClassOf(spec: PodSpec): PodQosClass {
  let asks = false;
  let guaranteed = true;
  for (const { resources } of [...spec.containers, ...(spec.initContainers ?? [])]) {
    for (const name of ["cpu", "memory"]) {
      const limit = nanos(resources?.limits?.[name]);
      const request = resources?.requests?.[name] === undefined ? limit : nanos(resources.requests[name]);
      if (limit > 0n || request > 0n) asks = true;
      if (limit === 0n || limit !== request) guaranteed = false;
    }
  }
  if (!asks) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

function nanos(amount: string | undefined): bigint {
  return amount === undefined ? 0n : (parseQuantity(amount)?.nanos ?? 0n);
}
