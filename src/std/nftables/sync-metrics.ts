/** Metrics of updates of rules in the kernel. */
import { exponentialBuckets } from "../metrics/buckets.ts";
import type { MetricOptions, MetricRegistry } from "../metrics/metrics.ts";
import type { Clock } from "../time/clock.ts";

/** 1 ms to 16 s. */
const SYNC_SECONDS = exponentialBuckets(0.001, 2, 15);

export interface SyncMetrics {
  recordSync(seconds: number): void;
  recordFailure(): void;
}

type Metric = Pick<MetricOptions, "name" | "help">;

/** `duration` and `last` are in seconds. */
export function createSyncMetrics(
  registry: MetricRegistry,
  clock: Clock,
  names: { readonly duration: Metric; readonly last: Metric; readonly failures: Metric },
): SyncMetrics {
  const durations = registry.histogram({ ...names.duration, labels: [] }, SYNC_SECONDS);
  const last = registry.gauge({ ...names.last, labels: [] });
  const failures = registry.counter({ ...names.failures, labels: [] });
  return {
    recordSync(seconds) {
      durations.with().observe(seconds);
      last.with().set(clock.now() / 1000);
    },
    recordFailure: () => failures.with().inc(),
  };
}
