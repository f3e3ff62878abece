/** What pods request and their limits, as metrics of `/metrics/resources` with Kubernetes' names. */
import type { Pod } from "../api/core/pod/schema.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import { specLimits, specRequests } from "./cache/pod-requests.ts";
import type { Resources } from "./cache/resources.ts";

const labels = ["namespace", "pod", "node", "scheduler", "priority", "resource", "unit"];
const BYTES = /^(?:memory|storage|ephemeral-storage|hugepages-.*)$/;

/** The metrics are computed when they are read. */
export function registerResourceMetrics(registry: MetricRegistry, pods: () => Iterable<Pod>): void {
  const gauge = (name: string, help: string) => registry.gauge({ name, help, stability: "STABLE", labels });
  const requests = gauge("kube_pod_resource_request", "What pods request, by resource, in the unit of the resource.");
  const limits = gauge("kube_pod_resource_limit", "The limits of pods, by resource, in the unit of the resource.");
  registry.onCollect(() => {
    for (const family of [requests, limits]) family.clear();
    for (const pod of pods()) {
      if (isTerminal(pod)) continue;
      const record = (family: typeof requests, amounts: Resources): void => {
        for (const name of amounts.names()) {
          const amount = name === "cpu" ? amounts.milliCpu / 1000 : amounts.get(name);
          family.with(...valuesOf(pod), name, unitOf(name)).set(amount);
        }
      };
      record(requests, specRequests(pod));
      record(limits, specLimits(pod));
    }
  });
}

function valuesOf({ metadata, spec }: Pod): readonly string[] {
  const { nodeName = "", schedulerName = "", priority } = spec ?? {};
  return [metadata?.namespace ?? "", metadata?.name ?? "", nodeName, schedulerName, String(priority ?? "")];
}

function unitOf(resource: string): string {
  if (resource === "cpu") return "cores";
  return BYTES.test(resource) ? "bytes" : "integer";
}

function isTerminal({ spec, status }: Pod): boolean {
  return Boolean(spec?.nodeName) && (status?.phase === "Succeeded" || status?.phase === "Failed");
}
