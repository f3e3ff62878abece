/** Metrics of the CPU manager. */
import type { CounterFamily, GaugeFamily } from "../../../std/metrics/metrics.ts";

export interface CpuMetrics {
  readonly requests: CounterFamily;
  readonly errors: CounterFamily;
  readonly sharedPoolMillis: GaugeFamily;
  readonly exclusive: GaugeFamily;
  /** By NUMA node. */
  readonly exclusiveByNode: GaugeFamily;
  /** By scope and boundary. */
  readonly aligned: CounterFamily;
  readonly alignmentFailures: CounterFamily;
}
