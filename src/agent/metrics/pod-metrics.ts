/** Metrics of the node's pods, with the names and labels of kubelet's. */
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { Gauge, HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { appContainers, ephemeralContainers, isStatic, podUid } from "../pods/pod-fields.ts";
import type { StateName } from "../pods/states/pod-state.ts";
import type { Observation } from "../runtime/observation.ts";
import { podStartBuckets } from "./buckets.ts";

/** A pod's worker. */
export interface MeasuredPod {
  readonly pod: Pod;
  readonly observation: Observation;
  readonly stateName: StateName;
}

export interface MeasuredPods {
  readonly workers: Iterable<MeasuredPod>;
  isDesired(uid: string): boolean;
}

const CONTAINER_STATES = ["created", "exited", "running", "unknown"] as const;

/** The number of pods and containers in each state, counted when the metrics are requested. */
export function registerPodGauges(registry: MetricRegistry, pods: MeasuredPods): void {
  const gauge = (name: string, help: string, labels: readonly string[] = []) =>
    registry.gauge({ name: `kubelet_${name}`, help, stability: "ALPHA", labels });
  const active = gauge(
    "active_pods",
    "The number of pods the kubelet considers active and which are being considered when admitting new pods. static " +
      "is true if the pod is not from the apiserver.",
    ["static"],
  );
  const desired = gauge(
    "desired_pods",
    "The number of pods the kubelet is being instructed to run. static is true if the pod is not from the apiserver.",
    ["static"],
  );
  const working = gauge(
    "working_pods",
    "Number of pods the kubelet is actually running, broken down by lifecycle phase, whether the pod is desired, " +
      "orphaned, or runtime only (also orphaned), and whether the pod is static. An orphaned pod has been removed " +
      "from local configuration or force deleted in the API and consumes resources that are not otherwise visible.",
    ["config", "lifecycle", "static"],
  );
  const mirrors = gauge(
    "mirror_pods",
    "The number of mirror pods the kubelet will try to create (one per admitted static pod)",
  );
  const ephemeral = gauge(
    "managed_ephemeral_containers",
    "Current number of ephemeral containers in pods managed by this kubelet.",
  );
  const runningPods = gauge("running_pods", "Number of pods that have a running pod sandbox");
  const runningContainers = gauge("running_containers", "Number of containers currently running", ["container_state"]);
  registry.onCollect(() => {
    const all = [...pods.workers];
    const count = (test: (each: MeasuredPod) => boolean): number => all.filter(test).length;
    const isWanted = ({ pod }: MeasuredPod): boolean => pods.isDesired(podUid(pod));
    for (const kind of ["true", "false"]) {
      const isKind = ({ pod }: MeasuredPod): boolean => String(isStatic(pod)) === kind;
      active.with(kind).set(count((each) => isKind(each) && each.stateName !== "terminated"));
      desired.with(kind).set(count((each) => isKind(each) && isWanted(each)));
      for (const config of ["desired", "orphan", "runtime_only"]) {
        for (const lifecycle of ["sync", "terminating", "terminated"]) {
          const value = count(
            (each) => isKind(each) && toConfig(each, isWanted(each)) === config && toLifecycle(each) === lifecycle,
          );
          // A pod that only the runtime has is known to be neither static nor not, and it only terminates.
          if (config === "runtime_only" && (lifecycle === "sync" || kind === "true")) continue;
          working.with(config, lifecycle, config === "runtime_only" ? "unknown" : kind).set(value);
        }
      }
    }
    mirrors.with().set(count((each) => isStatic(each.pod) && isWanted(each)));
    ephemeral.with().set(all.reduce((sum, { pod }) => sum + ephemeralContainers(pod).length, 0));
    runningPods.with().set(count(({ observation }) => observation.sandboxes.some(({ ready }) => ready)));
    const containers = all.flatMap(({ observation }) => observation.containers);
    for (const state of CONTAINER_STATES) {
      runningContainers.with(state).set(containers.filter((each) => each.state === state).length);
    }
  });
}

/** A pod without spec is known from the runtime only. */
function toConfig({ pod }: MeasuredPod, isWanted: boolean): string {
  if (isWanted) return "desired";
  return pod.spec === undefined ? "runtime_only" : "orphan";
}

function toLifecycle({ stateName }: MeasuredPod): string {
  return stateName === "terminating" || stateName === "terminated" ? stateName : "sync";
}

/** A pod that has not started yet; times on the monotonic clock. */
interface StartingPod {
  readonly seenAt: number;
  /** From the first to the last pull of its images; undefined when none was pulled. */
  pulling?: { readonly began: number; readonly ended: number };
}

/** Kubernetes' ranges of the sizes of images. */
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const IMAGE_SIZES: readonly (readonly [bytesMax: number, label: string])[] = [
  [10 * MIB, "0-10MB"],
  [100 * MIB, "10MB-100MB"],
  [500 * MIB, "100MB-500MB"],
  [GIB, "500MB-1GB"],
  [5 * GIB, "1GB-5GB"],
  [10 * GIB, "5GB-10GB"],
  [20 * GIB, "10GB-20GB"],
  [30 * GIB, "20GB-30GB"],
  [40 * GIB, "30GB-40GB"],
  [60 * GIB, "40GB-60GB"],
  [100 * GIB, "60GB-100GB"],
];
const PULL_SECONDS = [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];

/** Measures how long pods take to start, and the pulls of their images. */
export class PodStartMetrics {
  readonly #clock: Clock;
  readonly #sinceSeen: HistogramFamily;
  readonly #sinceCreation: HistogramFamily;
  readonly #withoutPulls: HistogramFamily;
  readonly #firstNetworkPod: Gauge;
  readonly #pulls: HistogramFamily;
  readonly #containersPerPod: HistogramFamily;
  /** By uid; undefined once the pod has started. Bounded by the pods. */
  readonly #starting = new Map<string, StartingPod | undefined>();
  #hasNetworkPod = false;

  constructor(registry: MetricRegistry, clock: Clock) {
    this.#clock = clock;
    const stability = "ALPHA";
    const measured = "measured from pod creation timestamp to when all its containers are reported as started and";
    const starts = (name: string, help: string) =>
      registry.histogram({ name: `kubelet_pod_start_${name}duration_seconds`, help, stability }, podStartBuckets);
    this.#sinceSeen = starts(
      "",
      "Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run",
    );
    this.#sinceCreation = starts(
      "total_",
      `Duration in seconds to start a pod since creation, including time to pull images and run init containers, ${measured} observed via watch`,
    );
    this.#withoutPulls = starts(
      "sli_",
      `Duration in seconds to start a pod, excluding time to pull images and run init containers, ${measured} observed via watch`,
    );
    this.#firstNetworkPod = registry
      .gauge({
        name: "kubelet_first_network_pod_start_sli_duration_seconds",
        help: `Duration in seconds to start the first network pod, excluding time to pull images and run init containers, ${measured} observed via watch`,
      })
      .with();
    this.#pulls = registry.histogram(
      {
        name: "kubelet_image_pull_duration_seconds",
        help: "Duration in seconds to pull an image.",
        stability,
        labels: ["image_size_in_bytes"],
      },
      PULL_SECONDS,
    );
    this.#containersPerPod = registry.histogram(
      { name: "kubelet_containers_per_pod_count", help: "The number of containers per pod.", stability },
      [1, 2, 4, 8, 16],
    );
  }

  /** A pod has a new status. */
  onStatus(pod: Pod, status: PodStatus): void {
    const { phase, containerStatuses = [] } = status;
    const uid = podUid(pod);
    if (!this.#starting.has(uid)) {
      // A pod that runs already was started by an earlier agent.
      this.#starting.set(uid, phase === "Running" ? undefined : { seenAt: this.#clock.monotonic() });
      if (phase !== "Running") this.#containersPerPod.with().observe(appContainers(pod).length);
    }
    const starting = this.#starting.get(uid);
    if (starting === undefined || phase !== "Running" || !containerStatuses.every(({ started }) => started)) return;
    this.#starting.set(uid, undefined);
    this.#sinceSeen.with().observe((this.#clock.monotonic() - starting.seenAt) / 1000);
    const created = Date.parse(pod.metadata?.creationTimestamp ?? "");
    if (Number.isFinite(created)) this.#observeSinceCreation(pod, status, starting, this.#clock.now() - created);
  }

  /** An image of so many bytes was pulled for the pod. */
  onPulled(pod: Pod, bytes: number, milliseconds: number): void {
    const [, label = "GT100GB"] = IMAGE_SIZES.find(([bytesMax]) => bytes < bytesMax) ?? [];
    this.#pulls.with(label).observe(milliseconds / 1000);
    const starting = this.#starting.get(podUid(pod));
    if (starting === undefined) return;
    const ended = this.#clock.monotonic();
    starting.pulling = { began: Math.min(starting.pulling?.began ?? ended, ended - milliseconds), ended };
  }

  onRemoved(pod: Pod): void {
    this.#starting.delete(podUid(pod));
  }

  #observeSinceCreation(pod: Pod, status: PodStatus, { pulling }: StartingPod, milliseconds: number): void {
    this.#sinceCreation.with().observe(milliseconds / 1000);
    const pulledMs = pulling === undefined ? 0 : pulling.ended - pulling.began;
    const seconds = Math.max(0, milliseconds - pulledMs - sumInitMs(status)) / 1000;
    this.#withoutPulls.with().observe(seconds);
    if (this.#hasNetworkPod || pod.spec?.hostNetwork === true) return;
    this.#hasNetworkPod = true;
    this.#firstNetworkPod.set(seconds);
  }
}

/** How long the init containers ran, sidecars excluded. */
function sumInitMs({ initContainerStatuses = [] }: PodStatus): number {
  return initContainerStatuses.reduce((sum, { state }) => {
    const { startedAt = "", finishedAt = "" } = state?.terminated ?? {};
    const lasted = Date.parse(finishedAt) - Date.parse(startedAt);
    return sum + Math.max(lasted || 0, 0);
  }, 0);
}
