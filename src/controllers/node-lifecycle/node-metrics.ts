/** The metrics of the node lifecycle and taint eviction controllers, with Kubernetes' names. */
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";

const stability = "ALPHA";

export interface ZoneCounts {
  readonly ready: number;
  readonly notReady: number;
}

export interface NodeMetrics {
  recordNodeSync(seconds: number): void;
  /** All zones, by name. */
  recordZones(zones: ReadonlyMap<string, ZoneCounts>, seconds: number): void;
  /** A node got a taint that evicts its pods. */
  recordNodeEviction(zone: string): void;
}

export function createNodeMetrics(registry = new MetricRegistry()): NodeMetrics {
  const gauge = (name: string, help: string) =>
    registry.gauge({ name: `node_collector_${name}`, help, stability, labels: ["zone"] });
  const size = gauge("zone_size", "Registered nodes of each zone.");
  const health = gauge("zone_health", "Percentage of ready nodes of each zone.");
  const unhealthy = gauge("unhealthy_nodes_in_zone", "Nodes of each zone that are not ready.");
  const histogram = (name: string, help: string, first: number) =>
    registry.histogram({ name: `node_collector_${name}`, help, stability }, exponentialBuckets(first, 4, 8)).with();
  const all = histogram("update_all_nodes_health_duration_seconds", "How long an update of all zones takes.", 0.01);
  const one = histogram("update_node_health_duration_seconds", "How long the sync of a node takes.", 0.001);
  const evictions = registry.counter({
    name: "node_collector_evictions_total",
    help: "Nodes whose pods the controller began to evict.",
    stability: "STABLE",
    labels: ["zone"],
  });
  return {
    recordNodeSync: (seconds) => one.observe(seconds),
    recordZones(zones, seconds) {
      for (const family of [size, health, unhealthy]) family.clear();
      for (const [zone, { ready, notReady }] of zones) {
        const label = labelOf(zone);
        size.with(label).set(ready + notReady);
        health.with(label).set((100 * ready) / (ready + notReady));
        unhealthy.with(label).set(notReady);
        evictions.with(label);
      }
      all.observe(seconds);
    },
    recordNodeEviction: (zone) => evictions.with(labelOf(zone)).inc(),
  };
}

export interface EvictionMetrics {
  /** `delayMs`: since the pod was due. */
  recordPodDeletion(delayMs: number): void;
}

export function createEvictionMetrics(registry = new MetricRegistry()): EvictionMetrics {
  const deletions = registry
    .counter({
      name: "taint_eviction_controller_pod_deletions_total",
      help: "Pods deleted because of taints.",
      stability,
    })
    .with();
  const delays = registry
    .histogram(
      {
        name: "taint_eviction_controller_pod_deletion_duration_seconds",
        help: "Time from when a taint evicts a pod to its deletion.",
        stability,
      },
      [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240],
    )
    .with();
  return {
    recordPodDeletion(delayMs) {
      deletions.inc();
      delays.observe(delayMs / 1000);
    },
  };
}

/** Kubernetes separates region and zone so, and leaves the name empty without both. */
function labelOf(zone: string): string {
  return zone === "/" ? "" : zone.replace("/", ":\0:");
}
