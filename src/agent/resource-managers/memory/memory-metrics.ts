/** Metrics of the memory manager. */
import type { CounterFamily } from "../../../std/metrics/metrics.ts";

export interface MemoryMetrics {
  readonly requests: CounterFamily;
  readonly errors: CounterFamily;
}
