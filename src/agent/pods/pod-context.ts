/** What the states of a pod's worker have access to. */
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { NetworkPolicies } from "../../network-policy/network-policies.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Tracer } from "../../tracing/tracer.ts";
import type { ImageManager } from "../images/image-manager.ts";
import type { RecordNodeEvent } from "../node/node-events.ts";
import type { ProbeManager } from "../probes/probe-manager.ts";
import type { ResourceManagers } from "../resource-managers/resource-managers.ts";
import type { CreatedIds, Observation } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Mounter } from "../volumes/mount/mounter.ts";
import type { VolumeManager } from "../volumes/volume-manager.ts";
import type { PodAdmitter } from "./admission/pod-admitter.ts";
import type { Directories } from "./directories.ts";
import type { NodeInfo } from "./environment/downward-api.ts";
import type { EnvironmentSources } from "./environment/environment.ts";
import type { PodEventRecorder } from "./pod-events.ts";
import type { CgroupSettings } from "./resources/cgroup-names.ts";
import type { ResourceSettings } from "./resources/container-resources.ts";
import type { PodCgroups } from "./resources/pod-cgroups.ts";
import type { ResourceAllocation } from "./resources/resource-allocation.ts";
import type { UserNamespaces } from "./sandbox/user-namespaces.ts";
import type { WaitingReason } from "./status/container-status.ts";
import type { Termination } from "./worker/pod-termination.ts";
import type { RestartBackoff, RestartDelays } from "./worker/restart-backoff.ts";
import type { StartLimiter } from "./worker/start-limiter.ts";

export interface PodSettings {
  readonly directories: Directories;
  readonly cpu: ResourceSettings;
  readonly cgroups: CgroupSettings;
  readonly seccompDefault: boolean;
  /** Whether containers may set `lifecycle.stopSignal`. */
  readonly stopSignals?: boolean;
  /** Whether pods may have resources for the pod as a whole. */
  readonly podLevelResources?: boolean;
  /** Whether changed resources of a container are applied while it runs; true when absent. */
  readonly inPlaceResize?: boolean;
  /** Whether pods have the condition PodReadyToStartContainers; true when absent. */
  readonly readyToStartCondition?: boolean;
  /** Whether the status of pods has the generation that it is about. */
  readonly observedGeneration?: boolean;
  /** Whether pods may exclude the groups that their images define; true when absent. */
  readonly supplementalGroupsPolicy?: boolean;
  /** Whether the status of containers has the health of their devices. */
  readonly deviceHealth?: boolean;
  /** Whether pods may have resource claims. */
  readonly resourceClaims?: boolean;
  /** Whether pods may mount images. */
  readonly imageVolumes?: boolean;
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  /** Whether the configuration names no resolver file (`--resolv-conf=`). */
  readonly isWithoutResolvConf?: boolean;
  /** Exited runs of a container that are kept when the next one starts; negative keeps all. */
  readonly deadRunsMax: number;
  /** Runs that exited more recently are kept in addition. */
  readonly deadRunMinAgeMs: number;
  /** Kubernetes' when undefined. */
  readonly restartDelays?: RestartDelays;
  /** Interval between two syncs of a pod without changes. */
  readonly syncMs: number;
  readonly memoryCapacityBytes: number;
  /** User-Agent header of lifecycle hooks over HTTP. */
  readonly hookUserAgent: string;
}

/** Why a worker worked on its pod: the first time, a new version of it, or another change. */
export type SyncOperation = "create" | "update" | "sync";

/** Records what the workers do. */
export interface PodWorkMetrics {
  /** `seconds` since a source first had the pod. */
  onWorkerStart(seconds: number): void;
  /** The worker has nothing to do for now. */
  onSync(operation: SyncOperation, seconds: number): void;
  /** The node does not run the pod. */
  onRejected(reason: string): void;
  /** A lifecycle hook over HTTPS succeeded over HTTP only. */
  onHookFallback(): void;
  onSleepHookEndedEarly(): void;
}

/** Shared by all pods of the node. */
export interface PodServices {
  readonly settings: PodSettings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly runtime: Runtime;
  readonly images: ImageManager;
  readonly volumes: VolumeManager;
  readonly mounter: Mounter;
  readonly probes: ProbeManager;
  readonly events: PodEventRecorder;
  readonly recordNodeEvent?: RecordNodeEvent | undefined;
  readonly environment: EnvironmentSources;
  /** ConfigMaps and Secrets of manifests: the only ones that static pods see. */
  readonly manifestEnvironment?: EnvironmentSources;
  readonly node: () => NodeInfo;
  /** `containerd` */
  readonly getRuntimeName: () => string;
  /** The text of a file of the node; empty when it is absent. */
  readonly readHostFile: (name: "resolv.conf" | "hosts") => Promise<string>;
  /** Undefined: pods cannot have a user namespace. */
  readonly userNamespaces?: Pick<UserNamespaces, "allocate" | "release"> | undefined;
  readonly cgroups: Pick<PodCgroups, "apply" | "remove" | "removeAll">;
  /** The handler of the pod's RuntimeClass; empty for the default. Rejects with Kubernetes' text. */
  readonly getRuntimeHandler: (pod: Pod) => Promise<string>;
  readonly admission: Pick<PodAdmitter, "admit" | "adopt" | "resize">;
  /** Undefined: containers get no CPUs, memory or devices of their own. */
  readonly resourceManagers?: Pick<ResourceManagers, "getAssignment" | "listDeviceHealth" | "claims"> | undefined;
  readonly startLimiter: Pick<StartLimiter, "acquire">;
  readonly metrics?: PodWorkMetrics | undefined;
  /** Undefined: the work on pods is not traced. */
  readonly tracer?: Tracer | undefined;
  /** Undefined: the agent enforces no network policies. */
  readonly networkPolicies?: Pick<NetworkPolicies, "setPod"> | undefined;
  /** Announces a change in the runtime, so that the next listing comes soon. */
  readonly expectChange: () => void;
  /** All containers of a deleted pod have stopped and its volumes are released. */
  readonly onFinished: (pod: Pod) => void;
}

/** In-memory state of a pod's worker. It ends with the process: nothing here may be required after a restart. */
export interface PodMemory {
  readonly backoff: RestartBackoff;
  /** Why containers wait, by name. */
  readonly waitingReasons: Map<string, WaitingReason>;
  /** Reasons that the status shows from the next sync on, by container; `from` is on the monotonic clock. */
  readonly pendingReasons: Map<string, { readonly reason: WaitingReason; readonly from: number }>;
  /** When to try a container again that could not be started, by name; on the monotonic clock. */
  readonly retryAt: Map<string, number>;
  /** Ids of containers that were killed to be restarted at once. */
  readonly toRestart: Set<string>;
  /** Ids of containers that are being started; the status shows them when their postStart hooks have completed. */
  readonly unfinishedStarts: Set<string>;
  readonly resources: ResourceAllocation;
  startTime: number;
  status: PodStatus | undefined;
  /** Whether all init containers had completed when the pod's termination began. */
  hasInitialized: boolean | undefined;
  /** Why the node rejected the pod. */
  rejection: WaitingReason | undefined;
  /** The runtime's ids of images that are mounted as volumes, by reference. */
  readonly imageRefs: Map<string, string>;
  /** Resolves when the volumes of the terminated pod are released. */
  readonly released: PromiseWithResolvers<void>;
}

export interface PodContext {
  readonly services: PodServices;
  readonly log: Logger;
  /** The newest desired version, with the resources that are allocated to it. */
  readonly pod: Pod;
  /** The newest desired version, with the resources that it requests. */
  readonly desired: Pod;
  readonly observation: Observation;
  readonly memory: PodMemory;
  /** Aborts when the pod is to end, is to end sooner, or the agent stops. */
  readonly signal: AbortSignal;
  /** Aborts when the agent stops. */
  readonly stopSignal: AbortSignal;
  readonly termination: Termination | undefined;
  /** The sources no longer have the pod. */
  readonly isRemoved: boolean;
  /**
   * Observes the pod in the runtime; only the created containers if the worker did nothing else since the last time.
   */
  refresh(): Promise<Observation>;
  /** Creates a sandbox or container in the runtime. The next `refresh` observes only that; everything if undefined. */
  create(work: () => Promise<CreatedIds | undefined>): Promise<void>;
  /** Waits until the node has CPU to start the pod; the pod holds the slot until it waits or pauses. */
  acquireStartSlot(): Promise<void>;
  /** Waits until something changed, at most that many milliseconds. */
  wait(milliseconds: number): Promise<void>;
  /** Waits that many milliseconds, whatever changes. */
  pause(milliseconds: number): Promise<void>;
}
