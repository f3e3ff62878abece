/** What a pod's states work with. */
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ImageManager } from "../images/image-manager.ts";
import type { ProbeManager } from "../probes/probe-manager.ts";
import type { CreatedIds, Observation } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Mounter } from "../volumes/mount/mounter.ts";
import type { VolumeManager } from "../volumes/volume-manager.ts";
import type { PodAdmitter } from "./admission/pod-admitter.ts";
import type { Directories } from "./directories.ts";
import type { NodeInfo } from "./environment/downward-api.ts";
import type { EnvironmentSources } from "./environment/environment.ts";
import type { PodEventRecorder } from "./pod-events.ts";
import type { CgroupSettings, ResourceSettings } from "./resources/container-resources.ts";
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
  /** Whether containers may say by which signal they are stopped. */
  readonly stopSignals?: boolean;
  /** Whether pods may mount images. */
  readonly imageVolumes?: boolean;
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  /** Ended runs that are kept of a container when the next one starts; negative keeps all. */
  readonly deadRunsMax: number;
  /** Those that ended more recently are kept besides. */
  readonly deadRunMinAgeMs: number;
  /** Kubernetes' when undefined. */
  readonly restartDelays?: RestartDelays;
  /** How long a calm pod is left alone. */
  readonly syncMs: number;
  /** Longest wait for a hook that has no limit of its own. */
  readonly hookTimeoutMs: number;
  readonly memoryCapacityBytes: number;
  /** What lifecycle hooks over HTTP call themselves. */
  readonly hookUserAgent: string;
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
  readonly environment: EnvironmentSources;
  /** What lies beside static pods; these see nothing else. */
  readonly manifestEnvironment?: EnvironmentSources;
  readonly node: () => NodeInfo;
  /** `containerd` */
  readonly runtimeName: () => string;
  /** The text of a file of the node; empty when it is absent. */
  readonly hostFile: (name: "resolv.conf" | "hosts") => Promise<string>;
  /** Undefined: no pod may have one of its own. */
  readonly userNamespaces?: Pick<UserNamespaces, "allocate" | "release"> | undefined;
  readonly cgroups: Pick<PodCgroups, "apply" | "remove" | "removeAll">;
  /** The runtime's name for what the pod's class asks for; empty for its default. Rejects in Kubernetes' words. */
  readonly runtimeHandler: (pod: Pod) => Promise<string>;
  readonly admission: Pick<PodAdmitter, "admit" | "adopt" | "resize">;
  readonly startLimiter: Pick<StartLimiter, "acquire">;
  /** Says that the runtime is about to change, so that it is looked at soon. */
  readonly expectChange: () => void;
  /** Everything of a deleted pod has stopped and is released. */
  readonly onFinished: (pod: Pod) => void;
}

/**
 * What a pod's worker remembers between states; gone with the process, so nothing here may be needed after a restart.
 */
export interface PodMemory {
  readonly backoff: RestartBackoff;
  /** Why containers wait, by name. */
  readonly waitingReasons: Map<string, WaitingReason>;
  /** Reasons that show from the next sync on, by container, with the time of that sync on the monotonic clock. */
  readonly pendingReasons: Map<string, { readonly reason: WaitingReason; readonly from: number }>;
  /** When to try a container again that could not be started, by name; on the monotonic clock. */
  readonly retryAt: Map<string, number>;
  /** Ids of containers that were ended to be started again at once. */
  readonly toRestart: Set<string>;
  readonly resources: ResourceAllocation;
  startTime: number;
  status: PodStatus | undefined;
  /** Whether the init containers had all had their turn when the pod began to end. */
  initialized: boolean | undefined;
  /** The node turned the pod away. */
  rejection: WaitingReason | undefined;
  mounted: boolean;
  /** The runtime's names of the images that are mounted as volumes, by reference. */
  readonly imageRefs: Map<string, string>;
}

export interface PodContext {
  readonly services: PodServices;
  readonly log: Logger;
  /** The newest version that was wanted, with the resources that it is granted. */
  readonly pod: Pod;
  /** The same with the resources that it asks for. */
  readonly wanted: Pod;
  readonly observation: Observation;
  readonly memory: PodMemory;
  /** Aborts when the pod is to end, is to end sooner, or the agent stops. */
  readonly signal: AbortSignal;
  readonly termination: Termination | undefined;
  /** The sources no longer have the pod. */
  readonly removed: boolean;
  /** Looks at the runtime now, or at what was made since the last look where nothing else was done. */
  refresh(): Promise<Observation>;
  /** Has the runtime make something, which is all that the next look is about; undefined: it is about everything. */
  create(work: () => Promise<CreatedIds | undefined>): Promise<void>;
  /** Until the machine has room for a pod to start; the turn lasts until the pod waits or pauses. */
  acquireStartSlot(): Promise<void>;
  /** Until something changed, but no longer than that many milliseconds. */
  wait(milliseconds: number): Promise<void>;
  /** That many milliseconds, whatever changes. */
  pause(milliseconds: number): Promise<void>;
}
