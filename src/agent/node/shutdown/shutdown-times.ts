/** The metrics of graceful shutdowns, which kubelet has with its default gates whether it handles shutdowns or not. */
import type { Gauge, MetricRegistry } from "../../../std/metrics/metrics.ts";

/** Seconds since 1970; 0 without a shutdown. */
export interface ShutdownGauges {
  readonly start: Gauge;
  readonly end: Gauge;
}

export function registerShutdownTimes(metrics: MetricRegistry): ShutdownGauges {
  const gauge = (kind: string): Gauge => {
    const name = `kubelet_graceful_shutdown_${kind}_time_seconds`;
    const help = `Last graceful shutdown ${kind} time since unix epoch in seconds`;
    return metrics.gauge({ name, help, stability: "ALPHA" }).with();
  };
  return { start: gauge("start"), end: gauge("end") };
}
