/** Computes the status of a pod from its spec and the observed containers. */

import type { ContainerStatus } from "../../../api/core/container/status.ts";
import type { Pod, PodStatus } from "../../../api/core/pod/schema.ts";
import type { ResourceRequirements } from "../../../api/core/resources/schema.ts";
import { formatTime } from "../../../schema/value/time.ts";
import {
  appContainers,
  type ContainerRole,
  ephemeralContainers,
  initContainers,
  isDeleted,
  isSidecar,
  isStatic,
  restartPolicy,
} from "../pod-fields.ts";
import { getPodQosClass } from "../resources/qos.ts";
import {
  type ContainerStatusInput,
  computeContainerStatus,
  terminateStatuses,
  type WaitingReason,
} from "./container-status.ts";
import { type ConditionsInput, computeConditions } from "./pod-conditions.ts";
import { choosePublishedPhase, computePhase } from "./pod-phase.ts";

export interface PodStatusInput extends ConditionsInput {
  /** When the agent first synced the pod, milliseconds. */
  readonly startTime: number;
  readonly hostIps: readonly string[];
  readonly runtimeName: string;
  readonly waitingReasons: ReadonlyMap<string, WaitingReason>;
  readonly isReady: ContainerStatusInput["isReady"];
  readonly hasStarted: ContainerStatusInput["hasStarted"];
  readonly isReplaced: ContainerStatusInput["isReplaced"];
  /** No container restarts any more. */
  readonly isTerminating: boolean;
  /** Whether all init containers had completed when the pod's termination began. */
  readonly hasInitialized: boolean;
  /** Why the pod fails whatever its containers' exit codes: `DeadlineExceeded`, … */
  readonly failure: WaitingReason | undefined;
  /** Resources of the containers, by name; undefined for a container that never ran. */
  readonly actualResources: (name: string) => ResourceRequirements | undefined;
}

export function computePodStatus(input: PodStatusInput): PodStatus {
  const { pod, observation, previous } = input;
  // The status of a static pod that terminates is computed as if it continued to run.
  const ending = input.isTerminating && !isStatic(pod);
  const previousStatuses: Readonly<Record<ContainerRole, readonly ContainerStatus[] | undefined>> = {
    initContainers: previous?.initContainerStatuses,
    containers: previous?.containerStatuses,
    ephemeralContainers: previous?.ephemeralContainerStatuses,
  };
  const computeStatus = (role: ContainerRole) => (spec: ContainerStatusInput["spec"]) =>
    computeContainerStatus({
      spec,
      role,
      actualResources: input.actualResources(spec.name),
      observation,
      defaultReason: initContainers(pod).length > 0 ? "PodInitializing" : "ContainerCreating",
      waitingReason: ending ? undefined : input.waitingReasons.get(spec.name),
      runtimeName: input.runtimeName,
      isReady: input.isReady,
      hasStarted: input.hasStarted,
      isTerminated: input.isTerminated,
      isDeleted: isDeleted(pod),
      willRestart: (exitCode) => !ending && willRestart(pod, exitCode),
      isReplaced: input.isReplaced,
      previous: previousStatuses[role]?.find((each) => each.name === spec.name),
    });
  const inits = initContainers(pod).map(computeStatus("initContainers"));
  const apps = appContainers(pod).map(computeStatus("containers"));
  const ephemeral = ephemeralContainers(pod).map(computeStatus("ephemeralContainers"));
  const published = input.isTerminated ? terminateStatuses(inits, apps, input.hasInitialized) : { inits, apps };
  const computed = input.failure === undefined ? computePhase(input, inits, apps) : "Failed";
  const phase = choosePublishedPhase(computed, input);
  const hostIps = input.hostIps.map((ip) => ({ ip }));
  const podIps = findPodIps(input).map((ip) => ({ ip }));
  return {
    phase,
    conditions: computeConditions(input, computed, inits, apps),
    // Shown with the phase, when no container runs any more.
    ...(input.failure === undefined || phase !== "Failed"
      ? {}
      : { reason: input.failure.reason, message: input.failure.message }),
    ...(hostIps[0] === undefined ? {} : { hostIP: hostIps[0].ip, hostIPs: hostIps }),
    ...(podIps[0] === undefined ? {} : { podIP: podIps[0].ip, podIPs: podIps }),
    startTime: formatTime(input.startTime),
    ...(inits.length === 0 ? {} : { initContainerStatuses: published.inits }),
    containerStatuses: sortByName(published.apps),
    ...(ephemeral.length === 0 ? {} : { ephemeralContainerStatuses: sortByName(ephemeral) }),
    qosClass: previous?.qosClass ?? getPodQosClass(pod),
  };
}

/** As in Kubernetes, which shows init containers in the order of the spec. */
function sortByName(statuses: readonly ContainerStatus[]): readonly ContainerStatus[] {
  return statuses.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** By the pod's policy: Kubernetes shows how a sidecar of a `Never` pod ended, although it restarts. */
function willRestart(pod: Pod, exitCode: number): boolean {
  const policy = restartPolicy(pod);
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

/** Whether all init containers have completed, according to the status. */
export function hasInitialized(pod: Pod, status: PodStatus | undefined): boolean {
  if (initContainers(pod).length === 0) return true;
  const { initContainerStatuses: inits = [], containerStatuses: apps = [] } = status ?? {};
  if (apps.some(({ state, lastState }) => state?.waiting === undefined || lastState?.terminated !== undefined)) {
    return true;
  }
  const spec = initContainers(pod).at(-1);
  const last = inits.at(-1);
  if (last === undefined) return false;
  if (spec !== undefined && isSidecar(spec)) return last.state?.running !== undefined && last.started === true;
  return (last.state?.terminated ?? last.lastState?.terminated)?.exitCode === 0;
}

/** The status of a pod that the node rejected before any of its containers ran. */
export function makeRejectedStatus(pod: Pod, now: number, failure: WaitingReason): PodStatus {
  return {
    phase: "Failed",
    reason: failure.reason,
    message: `Pod was rejected: ${failure.message}`,
    startTime: formatTime(now),
    qosClass: pod.status?.qosClass ?? getPodQosClass(pod),
  };
}

function findPodIps(input: PodStatusInput): readonly string[] {
  if (input.pod.spec?.hostNetwork === true) {
    return input.observation.sandboxes.length > 0
      ? input.hostIps
      : (input.previous?.podIPs ?? []).map((each) => each.ip);
  }
  const sandbox = input.observation.sandboxes.find((each) => each.ready) ?? input.observation.sandboxes[0];
  if (sandbox !== undefined && sandbox.ips.length > 0) return sandbox.ips;
  return (input.previous?.podIPs ?? []).map((each) => each.ip);
}
