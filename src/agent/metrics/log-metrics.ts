/** How much disk space the logs of containers use, with the name and labels of kubelet's metric. */
import { join } from "node:path";
import type { GaugeFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import { podLogDir } from "../pods/directories.ts";
import { podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import type { DirectorySizes } from "../stats/directory-sizes.ts";
import type { StatsPod } from "../stats/stats-targets.ts";

export interface LogMetricsOptions {
  readonly pods: () => Iterable<StatsPod>;
  readonly rootDir: string;
  readonly podLogsDir: string;
  readonly sizes: Pick<DirectorySizes, "read" | "retain">;
}

/** Logs grow fast, and their directories have few files. */
const MAX_AGE_MS = 10_000;

export class LogMetrics {
  readonly #options: LogMetricsOptions;
  readonly #used: GaugeFamily;

  constructor(registry: MetricRegistry, options: LogMetricsOptions) {
    this.#options = options;
    this.#used = registry.gauge({
      name: "kubelet_container_log_filesystem_used_bytes",
      help: "Bytes used by the container's logs on the filesystem.",
      stability: "ALPHA",
      labels: ["uid", "namespace", "pod", "container"],
    });
  }

  /** Measures the logs of all containers. Those that do not exist have no sample. */
  async refresh(): Promise<void> {
    const { sizes } = this.#options;
    const found = await Promise.all(
      this.#listDirectories().map(async ({ path, labels }) => ({ labels, size: await sizes.read(path, MAX_AGE_MS) })),
    );
    this.#used.clear();
    for (const { labels, size } of found) if (size !== undefined) this.#used.with(...labels).set(size.usedBytes);
  }

  #listDirectories(): readonly { readonly path: string; readonly labels: readonly string[] }[] {
    const directories = [...this.#options.pods()].flatMap(({ pod, observation }) => {
      const directory = podLogDir(this.#options, pod);
      const names = new Set(observation.containers.map(({ name }) => name));
      return [...names].map((name) => ({
        path: join(directory, name),
        labels: [podUid(pod), podNamespace(pod), podName(pod), name],
      }));
    });
    this.#options.sizes.retain(new Set(directories.map(({ path }) => path)));
    return directories;
  }
}
