/** The pages of metrics of a server with several threads. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { ServerMetrics } from "../metrics/server-metrics.ts";
import { mergeSnapshots, takeSnapshot } from "./metric-snapshots.ts";
import type { ThreadLink } from "./thread-link.ts";

export class SharedMetrics {
  readonly #metrics: ServerMetrics;
  readonly #threads: ThreadLink;

  constructor(metrics: ServerMetrics, threads: ThreadLink) {
    this.#metrics = metrics;
    this.#threads = threads;
    threads.serveMetrics(
      () => ({ all: takeSnapshot(metrics.registry), slis: takeSnapshot(metrics.slis) }),
      () => {
        metrics.registry.reset();
        metrics.slis.reset();
      },
    );
  }

  /** The registries with the series of all threads. */
  async merge(registries: readonly MetricRegistry[]): Promise<readonly MetricRegistry[]> {
    const others = await this.#threads.collectMetrics();
    return registries.map((registry) => {
      const which = registry === this.#metrics.slis ? "slis" : "all";
      return mergeSnapshots([takeSnapshot(registry), ...others.map((other) => other[which])]);
    });
  }
}
