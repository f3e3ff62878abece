/** Metrics of the pod network. */
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { NetworkPlan } from "./network-plan.ts";

export interface PodNetworkMetrics {
  /** The kernel has the routes of the plan. */
  recordSync(plan: NetworkPlan): void;
  recordFailure(): void;
}

export function createPodNetworkMetrics(registry: MetricRegistry): PodNetworkMetrics {
  const routes = registry.gauge({
    name: "svc_pod_network_routes",
    help: "Number of routes to pods of other nodes: direct, or by the VXLAN device",
    labels: ["way"],
  });
  const problems = registry.gauge({
    name: "svc_pod_network_unreachable_ranges",
    help: "Number of pod CIDRs of other nodes without a route",
    labels: [],
  });
  const failures = registry.counter({
    name: "svc_pod_network_failures_total",
    help: "Number of attempts to configure the pod network that failed",
    labels: [],
  });
  return {
    recordSync(plan) {
      // Each route by the device has a neighbour.
      routes.with("vxlan").set(plan.neighbors.length);
      routes.with("direct").set(plan.routes.length - plan.neighbors.length);
      problems.with().set(plan.problems.length);
    },
    recordFailure: () => failures.with().inc(),
  };
}
