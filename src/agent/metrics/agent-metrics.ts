/** The metrics of the agent at `/metrics` and `/metrics/probes`, with the names of kubelet's. */
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import { type FeatureState, registerBuildMetrics, registerRegistryMetrics } from "../../flags/build-metrics.ts";
import {
  type CounterFamily,
  type Gauge,
  type Histogram,
  type HistogramFamily,
  MetricRegistry,
} from "../../std/metrics/metrics.ts";
import { registerProcessMetrics } from "../../std/metrics/process-metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { versionInfo } from "../../std/version-info.ts";
import type { CredentialPluginObserver } from "../images/credential-providers.ts";
import type { PluginSocketObserver } from "../plugins/plugin-watcher.ts";
import type { PodWorkMetrics } from "../pods/pod-context.ts";
import { isStatic, podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import type { ProberOptions } from "../probes/prober.ts";
import type { ContainerEventsObserver } from "../runtime/container-events.ts";
import type { Relister, RelisterOptions } from "../runtime/relister.ts";
import type { VolumeObserver } from "../volumes/volume-manager.ts";
import { secondsBuckets } from "./buckets.ts";
import { createEventStreamMetrics } from "./event-stream-metrics.ts";
import { createCredentialPluginMetrics, createPluginMetrics } from "./plugin-metrics.ts";
import { type MeasuredPods, PodStartMetrics, registerPodGauges } from "./pod-metrics.ts";
import { ProbeMetrics } from "./probe-metrics.ts";
import { createStorageMetrics } from "./storage-metrics.ts";
import { createWorkerMetrics } from "./worker-metrics.ts";

export interface AgentMetricsOptions {
  /** Has the metrics of the runtime's calls already. */
  readonly registry: MetricRegistry;
  readonly nodeName: string;
  /** `v1.33.0` */
  readonly version: string;
  readonly isUnified: boolean;
  readonly features: readonly FeatureState[];
  readonly clock: Clock;
}

/** Runs an operation on control groups and measures it. */
export type MeasureCgroup = <T>(operation: "update" | "destroy", work: () => Promise<T>) => Promise<T>;

const stability = "ALPHA";

export class AgentMetrics implements Disposable {
  readonly registry: MetricRegistry;
  readonly probes = new MetricRegistry();
  readonly relist: NonNullable<RelisterOptions["metrics"]>;
  readonly workers: PodWorkMetrics;
  readonly volumes: VolumeObserver;
  readonly eventStream: ContainerEventsObserver;
  readonly plugins: PluginSocketObserver;
  readonly credentialPlugins: CredentialPluginObserver;
  readonly #probeMetrics = new ProbeMetrics(this.probes);
  readonly #starts: PodStartMetrics;
  readonly #restarted: CounterFamily;
  readonly #orphaned: CounterFamily;
  readonly #evictions: CounterFamily;
  readonly #preemptions: CounterFamily;
  readonly #statsAges: HistogramFamily;
  readonly #collectedImages: CounterFamily;
  readonly #cleanedVolumes: Gauge;
  readonly #uncleanedVolumes: Gauge;
  readonly #cgroupDurations: HistogramFamily;
  readonly #clock: Clock;
  readonly #process: Disposable;

  constructor({ registry, nodeName, version, isUnified, features, clock }: AgentMetricsOptions) {
    this.registry = registry;
    this.#clock = clock;
    this.relist = {
      duration: this.#relistHistogram("duration", "Duration in seconds for relisting pods in PLEG."),
      interval: this.#relistHistogram("interval", "Interval in seconds between relisting in PLEG."),
    };
    this.workers = createWorkerMetrics(registry);
    this.volumes = createStorageMetrics(registry);
    this.eventStream = createEventStreamMetrics(registry);
    this.plugins = createPluginMetrics(registry);
    this.credentialPlugins = createCredentialPluginMetrics(registry);
    this.#starts = new PodStartMetrics(registry, clock);
    const help = "The node's name. The count is always 1.";
    registry
      .gauge({ name: "kubelet_node_name", help, stability, labels: ["node"] })
      .with(nodeName)
      .set(1);
    registry
      .gauge({ name: "kubelet_cgroup_version", help: "cgroup version on the hosts.", stability })
      .with()
      .set(isUnified ? 2 : 1);
    this.#restarted = registry.counter({
      name: "kubelet_restarted_pods_total",
      help:
        "Number of pods that have been restarted because they were deleted and recreated with the same UID while the " +
        "kubelet was watching them (common for static pods, extremely uncommon for API pods)",
      stability,
      labels: ["static"],
    });
    for (const kind of ["", "true"]) this.#restarted.with(kind);
    this.#orphaned = registry.counter({
      name: "kubelet_orphaned_runtime_pods_total",
      help:
        "Number of pods that have been detected in the container runtime without being already known to the pod " +
        "worker. This typically indicates the kubelet was restarted while a pod was force deleted in the API or in " +
        "the local configuration, which is unusual.",
      stability,
    });
    this.#orphaned.with();
    this.#evictions = registry.counter({
      name: "kubelet_evictions",
      help: "Cumulative number of pod evictions by eviction signal",
      stability,
      labels: ["eviction_signal"],
    });
    this.#preemptions = registry.counter({
      name: "kubelet_preemptions",
      help: "Cumulative number of pod preemptions by preemption resource",
      stability,
      labels: ["preemption_signal"],
    });
    this.#statsAges = registry.histogram(
      {
        name: "kubelet_eviction_stats_age_seconds",
        help: "Time between when stats are collected, and when pod is evicted based on those stats by eviction signal",
        stability,
        labels: ["eviction_signal"],
      },
      secondsBuckets,
    );
    this.#collectedImages = registry.counter({
      name: "kubelet_image_garbage_collected_total",
      help: "Total number of images garbage collected by the kubelet, whether through disk usage or image age.",
      stability,
      labels: ["reason"],
    });
    const cleaned = (suffix: string, what: string): Gauge =>
      registry
        .gauge({
          name: `kubelet_orphan_pod_cleaned_volumes${suffix}`,
          help: `The ${what} in the last periodic sweep.`,
          stability,
        })
        .with();
    this.#cleanedVolumes = cleaned("", "total number of orphaned Pods whose volumes were cleaned");
    this.#uncleanedVolumes = cleaned("_errors", "number of orphaned Pods whose volumes failed to be cleaned");
    this.#cgroupDurations = registry.histogram(
      {
        name: "kubelet_cgroup_manager_duration_seconds",
        help: "Duration in seconds for cgroup manager operations. Broken down by method.",
        stability,
        labels: ["operation_type"],
      },
      secondsBuckets,
    );
    registerBuildMetrics(registry, versionInfo(version), features);
    this.#process = registerProcessMetrics(registry);
  }

  /** Registers what is read from components that exist only now. */
  observe(pods: MeasuredPods, relister: Pick<Relister, "lastSuccess">): void {
    registerPodGauges(this.registry, pods);
    const help = "Timestamp in seconds when PLEG was last seen active.";
    const seen = this.registry.gauge({ name: "kubelet_pleg_last_seen_seconds", help, stability });
    this.registry.onCollect(() => {
      const ageMs = this.#clock.monotonic() - relister.lastSuccess;
      seen.with().set((this.#clock.now() - ageMs) / 1000);
    });
    registerRegistryMetrics(this.registry);
  }

  readonly onProbe: NonNullable<ProberOptions["onResult"]> = ({ pod, spec, kind }, outcome, seconds) => {
    const probeType = kind.slice(0, 1).toUpperCase() + kind.slice(1);
    const probed = { container: spec.name, pod: podName(pod), namespace: podNamespace(pod), podUid: podUid(pod) };
    this.#probeMetrics.observe({ ...probed, probeType }, PROBE_RESULTS[outcome], seconds);
  };

  onStatus(pod: Pod, status: PodStatus): void {
    this.#starts.onStatus(pod, status);
  }

  readonly measureCgroup: MeasureCgroup = async (operation, work) => {
    const began = this.#clock.monotonic();
    try {
      return await work();
    } finally {
      this.#cgroupDurations.with(operation).observe((this.#clock.monotonic() - began) / 1000);
    }
  };

  onRestart(pod: Pod): void {
    this.#restarted.with(isStatic(pod) ? "true" : "").inc();
  }

  onOrphan(): void {
    this.#orphaned.with().inc();
  }

  /** `emptydirfs.limit` */
  onEvicted(signal: string): void {
    this.#evictions.with(signal).inc();
  }

  /** `resource`: the first that the critical pod lacked. */
  onPreempted(resource: string): void {
    this.#preemptions.with(resource).inc();
  }

  onStatsAge(signal: string, seconds: number): void {
    this.#statsAges.with(signal).observe(seconds);
  }

  onImageCollected(reason: "space" | "age"): void {
    this.#collectedImages.with(reason).inc();
  }

  onOrphanedVolumes(removed: number, failed: number): void {
    this.#cleanedVolumes.set(removed);
    this.#uncleanedVolumes.set(failed);
  }

  onPulled(pod: Pod, bytes: number, milliseconds: number): void {
    this.#starts.onPulled(pod, bytes, milliseconds);
  }

  onRemoved(pod: Pod): void {
    this.#starts.onRemoved(pod);
    this.#probeMetrics.removePod(podUid(pod), podNamespace(pod), podName(pod));
  }

  [Symbol.dispose](): void {
    this.#process[Symbol.dispose]();
  }

  #relistHistogram(name: string, help: string): Histogram {
    return this.registry
      .histogram({ name: `kubelet_pleg_relist_${name}_seconds`, help, stability }, secondsBuckets)
      .with();
  }
}

const PROBE_RESULTS = { success: "successful", warning: "successful", failure: "failed", unknown: "unknown" } as const;
