/** Metrics of volumes: how many there are of each plugin, and how full the volumes of claims are. */
import type { Volume } from "../../api/core/volume/schema.ts";
import type { GaugeFamily, HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { podNamespace } from "../pods/pod-fields.ts";
import type { FileSystem, FileSystems } from "../stats/file-systems.ts";
import type { StatsPod } from "../stats/stats-targets.ts";
import type { SummaryOptions } from "../stats/summary.ts";
import type { VolumeManager } from "../volumes/volume-manager.ts";
import { secondsBuckets } from "./buckets.ts";

/** Kubernetes' names of the plugins. */
const PLUGINS: Readonly<Record<string, string>> = {
  configMap: "kubernetes.io/configmap",
  csi: "kubernetes.io/csi",
  downwardAPI: "kubernetes.io/downward-api",
  emptyDir: "kubernetes.io/empty-dir",
  flexVolume: "flexvolume",
  gitRepo: "kubernetes.io/git-repo",
  hostPath: "kubernetes.io/host-path",
  image: "kubernetes.io/image",
  projected: "kubernetes.io/projected",
  secret: "kubernetes.io/secret",
};

const stability = "ALPHA";
const CLAIM_LABELS = ["namespace", "persistentvolumeclaim"];

export class VolumeMetrics {
  readonly #volumes: Pick<VolumeManager, "path">;
  readonly #fileSystems: FileSystems;
  readonly #pods: () => Iterable<StatsPod>;
  readonly #clock: Clock;
  readonly #durations: HistogramFamily;
  readonly #health: SummaryOptions["volumeHealth"];
  readonly #abnormal: GaugeFamily | undefined;
  readonly #families: Readonly<Record<keyof FileSystem, GaugeFamily>>;

  constructor(
    registry: MetricRegistry,
    {
      volumes,
      fileSystems,
      pods,
      clock,
      volumeHealth,
    }: Pick<SummaryOptions, "volumes" | "fileSystems" | "pods" | "clock" | "volumeHealth">,
  ) {
    this.#volumes = volumes;
    this.#fileSystems = fileSystems;
    this.#pods = pods;
    this.#clock = clock;
    this.#health = volumeHealth;
    this.#durations = registry.histogram(
      {
        name: "kubelet_volume_metric_collection_duration_seconds",
        help: "Duration in seconds to calculate volume stats",
        stability,
        labels: ["metric_source"],
      },
      secondsBuckets,
    );
    const claim = (name: string, help: string): GaugeFamily =>
      registry.gauge({ name: `kubelet_volume_stats_${name}`, help, stability, labels: CLAIM_LABELS });
    this.#families = {
      availableBytes: claim("available_bytes", "Number of available bytes in the volume"),
      capacityBytes: claim("capacity_bytes", "Capacity in bytes of the volume"),
      usedBytes: claim("used_bytes", "Number of used bytes in the volume"),
      inodes: claim("inodes", "Maximum number of inodes in the volume"),
      inodesFree: claim("inodes_free", "Number of free inodes in the volume"),
      inodesUsed: claim("inodes_used", "Number of used inodes in the volume"),
    };
    const abnormal =
      "Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is unhealthy, " +
      "0 indicates volume is healthy";
    this.#abnormal = volumeHealth && claim("health_status_abnormal", abnormal);
    const total = registry.gauge({
      name: "volume_manager_total_volumes",
      help: "Number of volumes in Volume Manager",
      stability,
      labels: ["plugin_name", "state"],
    });
    registry.onCollect(() => {
      total.clear();
      for (const { pod, observation } of pods()) {
        for (const volume of pod.spec?.volumes ?? []) {
          total.with(findPlugin(volume), "desired_state_of_world").inc();
          if (observation.sandboxes.length > 0) total.with(findPlugin(volume), "actual_state_of_world").inc();
        }
      }
    });
  }

  async #read(path: string): Promise<FileSystem | undefined> {
    const began = this.#clock.monotonic();
    const usage = await this.#fileSystems.read(path);
    this.#durations.with("statfs").observe((this.#clock.monotonic() - began) / 1000);
    return usage;
  }

  /** Reads the file systems of claims' volumes. A volume that cannot be read has no samples. */
  async refresh(): Promise<void> {
    const read = [...this.#pods()].flatMap(({ pod }) =>
      (pod.spec?.volumes ?? []).map(async (volume) => {
        const name = volume.persistentVolumeClaim?.claimName;
        const usage = name === undefined ? undefined : await this.#read(this.#volumes.path(pod, volume));
        const abnormal = this.#health?.isAbnormal(pod, volume.name);
        return usage && { labels: [podNamespace(pod), name ?? ""] as const, usage, abnormal };
      }),
    );
    const found = await Promise.all(read);
    for (const family of Object.values(this.#families)) family.clear();
    this.#abnormal?.clear();
    for (const each of found) {
      if (each === undefined) continue;
      const { labels, usage, abnormal } = each;
      if (abnormal !== undefined) this.#abnormal?.with(...labels).set(Number(abnormal));
      for (const [name, value] of Object.entries(usage))
        this.#families[name as keyof FileSystem].with(...labels).set(value);
    }
  }
}

/** Of a claim's volume the plugin is that of its driver. */
export function findPlugin(volume: Volume): string {
  const source = Object.keys(volume).find((key) => PLUGINS[key] !== undefined) ?? "csi";
  return PLUGINS[source] ?? source;
}
