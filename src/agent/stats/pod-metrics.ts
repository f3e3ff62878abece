/** Metrics of the node's pods, with the names and labels of kubelet's. */
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
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

/** Measures how long pods take to start. */
export class PodStartMetrics {
  readonly #clock: Clock;
  readonly #sinceSeen: HistogramFamily;
  readonly #sinceCreation: HistogramFamily;
  readonly #containersPerPod: HistogramFamily;
  /** When each pod was seen first, on the monotonic clock; undefined once it has started. Bounded by the pods. */
  readonly #seenAt = new Map<string, number | undefined>();

  constructor(registry: MetricRegistry, clock: Clock) {
    this.#clock = clock;
    const stability = "ALPHA";
    this.#sinceSeen = registry.histogram(
      {
        name: "kubelet_pod_start_duration_seconds",
        help: "Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run",
        stability,
      },
      podStartBuckets,
    );
    this.#sinceCreation = registry.histogram(
      {
        name: "kubelet_pod_start_total_duration_seconds",
        help:
          "Duration in seconds to start a pod since creation, including time to pull images and run init " +
          "containers, measured from pod creation timestamp to when all its containers are reported as started and " +
          "observed via watch",
        stability,
      },
      podStartBuckets,
    );
    this.#containersPerPod = registry.histogram(
      { name: "kubelet_containers_per_pod_count", help: "The number of containers per pod.", stability },
      [1, 2, 4, 8, 16],
    );
  }

  /** A pod has a new status. */
  onStatus(pod: Pod, { phase, containerStatuses = [] }: PodStatus): void {
    const uid = podUid(pod);
    if (!this.#seenAt.has(uid)) {
      // A pod that runs already was started by an earlier agent.
      this.#seenAt.set(uid, phase === "Running" ? undefined : this.#clock.monotonic());
      if (phase !== "Running") this.#containersPerPod.with().observe(appContainers(pod).length);
    }
    const seenAt = this.#seenAt.get(uid);
    if (seenAt === undefined || phase !== "Running" || !containerStatuses.every(({ started }) => started)) return;
    this.#seenAt.set(uid, undefined);
    this.#sinceSeen.with().observe((this.#clock.monotonic() - seenAt) / 1000);
    const created = Date.parse(pod.metadata?.creationTimestamp ?? "");
    if (Number.isFinite(created)) this.#sinceCreation.with().observe((this.#clock.now() - created) / 1000);
  }

  onRemoved(pod: Pod): void {
    this.#seenAt.delete(podUid(pod));
  }
}
