/** `/metrics/probes`: results and durations of probes, with the names and labels of kubelet's metrics. */
import type { CounterFamily, HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import { secondsBuckets } from "./buckets.ts";

export interface ProbedContainer {
  readonly container: string;
  readonly pod: string;
  readonly namespace: string;
  readonly podUid: string;
  /** `Readiness` */
  readonly probeType: string;
}

export class ProbeMetrics {
  readonly #total: CounterFamily;
  readonly #durations: HistogramFamily;

  constructor(registry: MetricRegistry) {
    const stability = "ALPHA";
    this.#total = registry.counter({
      name: "prober_probe_total",
      help: "Cumulative number of a liveness, readiness or startup probe for a container by result.",
      stability,
      labels: ["probe_type", "result", "container", "pod", "namespace", "pod_uid"],
    });
    this.#durations = registry.histogram(
      {
        name: "prober_probe_duration_seconds",
        help: "Duration in seconds for a probe response.",
        stability,
        labels: ["probe_type", "container", "pod", "namespace"],
      },
      secondsBuckets,
    );
    registry
      .gauge({
        name: "process_start_time_seconds",
        help: "Start time of the process since unix epoch in seconds.",
        stability,
      })
      .with()
      .set(performance.timeOrigin / 1000);
  }

  /** `result`: `successful`, `failed` or `unknown`. */
  observe({ container, pod, namespace, podUid, probeType }: ProbedContainer, result: string, seconds: number): void {
    this.#total.with(probeType, result, container, pod, namespace, podUid).inc();
    if (result !== "unknown") this.#durations.with(probeType, container, pod, namespace).observe(seconds);
  }

  /** Removes the series of a pod that is removed from the node. */
  removePod(uid: string, namespace: string, pod: string): void {
    this.#total.removeWhere((values) => values[5] === uid);
    this.#durations.removeWhere((values) => values[2] === pod && values[3] === namespace);
  }
}
