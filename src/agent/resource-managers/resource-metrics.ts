/** Metrics of the managers of CPUs, memory and topology. */
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { CpuMetrics } from "./cpu/cpu-metrics.ts";
import type { MemoryMetrics } from "./memory/memory-metrics.ts";
import type { TopologyMetrics } from "./topology/topology-manager.ts";

export interface ResourceMetrics {
  readonly cpu: CpuMetrics;
  readonly memory: MemoryMetrics;
  readonly topology: TopologyMetrics;
}

const stability = "ALPHA";
/** Milliseconds. */
const DURATION_BUCKETS = exponentialBuckets(0.05, 2, 15);

export function createResourceMetrics(registry: MetricRegistry): ResourceMetrics {
  const counter = (name: string, help: string, labels: readonly string[] = []) =>
    registry.counter({ name: `kubelet_${name}`, help, stability, labels });
  const gauge = (name: string, help: string, labels: readonly string[] = []) =>
    registry.gauge({ name: `kubelet_${name}`, help, stability, labels });
  const aligned = counter(
    "container_aligned_compute_resources_count",
    "Cumulative number of aligned compute resources allocated to containers by alignment type.",
    ["scope", "boundary"],
  );
  const alignmentFailures = counter(
    "container_aligned_compute_resources_failure_count",
    "Cumulative number of failures to allocate aligned compute resources to containers by alignment type.",
    ["scope", "boundary"],
  );
  return {
    cpu: {
      requests: counter(
        "cpu_manager_pinning_requests_total",
        "The number of cpu core allocations which required pinning.",
      ),
      errors: counter(
        "cpu_manager_pinning_errors_total",
        "The number of cpu core allocations which required pinning failed.",
      ),
      sharedPoolMillis: gauge(
        "cpu_manager_shared_pool_size_millicores",
        "The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.",
      ),
      exclusive: gauge(
        "cpu_manager_exclusive_cpu_allocation_count",
        "The total number of CPUs exclusively allocated to containers running on this node",
      ),
      exclusiveByNode: gauge("cpu_manager_allocation_per_numa", "Number of CPUs allocated per NUMA node", [
        "numa_node",
      ]),
      aligned,
      alignmentFailures,
    },
    memory: {
      requests: counter(
        "memory_manager_pinning_requests_total",
        "The number of memory pages allocations which required pinning.",
      ),
      errors: counter(
        "memory_manager_pinning_errors_total",
        "The number of memory pages allocations which required pinning that failed.",
      ),
    },
    topology: {
      requests: counter(
        "topology_manager_admission_requests_total",
        "The number of admission requests where resources have to be aligned.",
      ),
      errors: counter(
        "topology_manager_admission_errors_total",
        "The number of admission request failures where resources could not be aligned.",
      ),
      durationMs: registry.histogram(
        {
          name: "kubelet_topology_manager_admission_duration_ms",
          help: "Duration in milliseconds to serve a pod admission request.",
          stability,
        },
        DURATION_BUCKETS,
      ),
      aligned,
      alignmentFailures,
    },
  };
}
