/** Computes the status of one container from its spec and its observed runs. */

import type { Container, VolumeMount } from "../../../api/core/container/schema.ts";
import type { ContainerState, ContainerStateTerminated, ContainerStatus } from "../../../api/core/container/status.ts";
import type { PodStatus } from "../../../api/core/pod/schema.ts";
import type { ResourceRequirements } from "../../../api/core/resources/schema.ts";
import { formatTime } from "../../../schema/value/time.ts";
import type { Observation, ObservedContainer, ObservedMount } from "../../runtime/observation.ts";
import { toApiSignal } from "../containers/stop-signals.ts";
import { type ContainerRole, isSidecar } from "../pod-fields.ts";

/** Why a container that should run does not: `CrashLoopBackOff`, `ErrImagePull`, … */
export interface WaitingReason {
  readonly reason: string;
  readonly message: string;
  /** Id of the run before, empty if there was none; the reason ends with a newer run. Undefined: it does not end. */
  readonly after?: string;
}

export interface ContainerStatusInput {
  readonly spec: Container;
  readonly role: ContainerRole;
  /** Undefined: those of the spec. */
  readonly actualResources: ResourceRequirements | undefined;
  readonly observation: Observation;
  /** The waiting reason before the first start. */
  readonly defaultReason: "ContainerCreating" | "PodInitializing";
  readonly waitingReason: WaitingReason | undefined;
  /** `containerd`, for `containerd://<id>`. */
  readonly runtimeName: string;
  readonly isReady: (container: Container, id: string) => boolean;
  readonly hasStarted: (container: Container, id: string) => boolean;
  /** All containers of the pod have been stopped for good. */
  readonly isTerminated: boolean;
  readonly isDeleted: boolean;
  /** Whether the container restarts after this exit code. */
  readonly willRestart: (exitCode: number) => boolean;
  /** Whether the run was killed to be restarted at once. */
  readonly isReplaced: (id: string) => boolean;
  /** The status that the API server has; it survives the loss of the runtime's records. */
  readonly previous: ContainerStatus | undefined;
}

/** Newest first, without a run that was created but not started. */
function findStartedRuns(observation: Observation, name: string): readonly ObservedContainer[] {
  return observation.containers.filter((each) => each.name === name && each.state !== "created");
}

/** Id of the run that the container's status describes; empty when there is none. */
export function currentRunId(observation: Observation, name: string): string {
  return findStartedRuns(observation, name)[0]?.id ?? "";
}

/** The run in the status' `lastState`: for a container that waits for its restart, the run that exited. */
export function findPreviousRun(
  podStatus: PodStatus | undefined,
  observation: Observation,
  name: string,
): ObservedContainer | undefined {
  const { initContainerStatuses: inits = [], containerStatuses: apps = [] } = podStatus ?? {};
  const status = [...inits, ...apps].find((each) => each.name === name);
  const id = status?.lastState?.terminated?.containerID?.replace(/^.*:\/\//, "");
  return observation.containers.find((each) => each.name === name && each.id === id);
}

export function computeContainerStatus(input: ContainerStatusInput): ContainerStatus {
  const { spec, observation } = input;
  const runs = findStartedRuns(observation, spec.name);
  const current = runs[0];
  const after = input.waitingReason?.after;
  const waiting = after === undefined || after === (current?.id ?? "") ? input.waitingReason : undefined;
  const last = runs.find((each, index) => index > 0 && each.state === "exited");
  if (current === undefined) return computeStatusWithoutRun(input, waiting);
  // The status goes from one run to the next in one step: the API server rejects a restart after a final exit.
  const { previous } = input;
  if (previous?.state?.running !== undefined && waiting === undefined && input.isReplaced(current.id)) return previous;
  const identifier = `${input.runtimeName}://${current.id}`;
  const observed = computeState(current, input);
  const { exitCode } = observed.terminated ?? {};
  // As in Kubernetes, an init container that has succeeded is never shown as waiting, not even a sidecar that restarts.
  const hasSucceeded = input.role === "initContainers" && exitCode === 0;
  const isOver = hasSucceeded || (exitCode !== undefined && !input.willRestart(exitCode));
  const isWaiting = waiting !== undefined && observed.running === undefined && !input.isTerminated && !isOver;
  const state: ContainerState = isWaiting ? { waiting: makeWaitingState(waiting) } : observed;
  const lastTerminated =
    isWaiting && observed.terminated !== undefined ? observed.terminated : makeTerminatedState(last, input);
  const started = current.state === "running" && input.hasStarted(spec, current.id);
  return {
    name: spec.name,
    state,
    ...computeLastState(input, lastTerminated, isWaiting ? undefined : identifier),
    ready: isReady(input, current, started),
    restartCount: current.restartCount,
    image: current.image === "" ? (spec.image ?? "") : current.image,
    imageID: current.imageId,
    containerID: identifier,
    ...(input.role === "ephemeralContainers" ? {} : { started }),
    ...makeResourceFields(spec, input.actualResources ?? spec.resources),
    ...makeMountFields(spec, current.mounts),
    ...makeRuntimeFields(current),
  };
}

/**
 * The last termination, if there was one: an empty struct reads back as an absent one. Ignores the previous `lastState`
 * if it is about the run that `state` shows, whose container id is `current`.
 */
function computeLastState(
  input: ContainerStatusInput,
  last?: ContainerStateTerminated,
  current?: string,
): Pick<ContainerStatus, "lastState"> {
  const previous = input.previous?.lastState;
  const isCurrent = current !== undefined && previous?.terminated?.containerID === current;
  const earlier = isCurrent ? undefined : previous;
  const lastState = last === undefined ? earlier : { terminated: last };
  return lastState === undefined ? {} : { lastState };
}

function isReady(input: ContainerStatusInput, current: ObservedContainer, started: boolean): boolean {
  if (input.role === "ephemeralContainers") return false;
  if (input.role === "initContainers" && !isSidecar(input.spec))
    return current.state === "exited" && current.exitCode === 0;
  return started && input.isReady(input.spec, current.id);
}

function computeStatusWithoutRun(input: ContainerStatusInput, waiting: WaitingReason | undefined): ContainerStatus {
  const { spec, previous } = input;
  const base = {
    name: spec.name,
    ready: false,
    restartCount: previous?.restartCount ?? 0,
    image: spec.image ?? "",
    imageID: "",
    ...(input.role === "ephemeralContainers" ? {} : { started: false }),
    ...makeMountFields(spec),
  };
  // The runtime has lost its records; the API server's status still has the end.
  if (previous?.state?.terminated?.containerID !== undefined) return previous;
  const state = previous?.state?.running === undefined ? undefined : previous;
  if (input.isTerminated && state !== undefined) return { ...state, ready: false, started: false };
  const reason = waiting ?? { reason: input.defaultReason, message: "" };
  const isLost = state !== undefined && waiting === undefined && state.lastState?.terminated === undefined;
  return {
    ...base,
    // It restarts, unless the pod ends.
    restartCount: base.restartCount + (isLost && !input.isDeleted ? 1 : 0),
    state: { waiting: makeWaitingState(reason) },
    ...computeLastState(input, isLost ? unknownTermination("deleted.  The container used to be Running") : undefined),
  };
}

/**
 * The container statuses of a terminated pod. A container that ran, or should have, and whose end is unknown counts as
 * failed. Init containers after the first, and after the last one that began, remain waiting.
 */
export function terminateStatuses(
  inits: readonly ContainerStatus[],
  apps: readonly ContainerStatus[],
  initialized: boolean,
): { readonly inits: readonly ContainerStatus[]; readonly apps: readonly ContainerStatus[] } {
  const last = inits.findLastIndex(({ state, lastState }) => state?.waiting === undefined || lastState !== undefined);
  const begun = Math.max(0, last);
  return {
    inits: inits.map((status, index) => (index <= begun ? terminateStatus(status) : status)),
    apps: initialized ? apps.map(terminateStatus) : apps,
  };
}

function terminateStatus(status: ContainerStatus): ContainerStatus {
  if (status.state?.terminated !== undefined) return status;
  return { ...status, ready: false, started: false, state: { terminated: unknownTermination("terminated") } };
}

function unknownTermination(when: string): ContainerStateTerminated {
  return {
    exitCode: 137,
    reason: "ContainerStatusUnknown",
    message: `The container could not be located when the pod was ${when}`,
  };
}

function makeWaitingState(reason: WaitingReason): { reason: string; message?: string } {
  return { reason: reason.reason, ...(reason.message === "" ? {} : { message: reason.message }) };
}

function computeState(container: ObservedContainer, input: ContainerStatusInput): ContainerState {
  if (container.state === "running") return { running: { startedAt: formatTime(container.startedAt) } };
  const ended = makeTerminatedState(container, input);
  return ended === undefined ? { waiting: { reason: input.defaultReason } } : { terminated: ended };
}

function makeTerminatedState(
  container: ObservedContainer | undefined,
  input: Pick<ContainerStatusInput, "runtimeName">,
): ContainerStateTerminated | undefined {
  if (container?.state !== "exited") return undefined;
  return {
    exitCode: container.exitCode,
    ...(container.reason === "" ? {} : { reason: container.reason }),
    ...(container.message === "" ? {} : { message: container.message }),
    startedAt: formatTime(container.startedAt),
    finishedAt: formatTime(container.finishedAt),
    containerID: `${input.runtimeName}://${container.id}`,
  };
}

/** The allocated and the actual resources. */
function makeResourceFields(
  spec: Container,
  { limits, requests }: ResourceRequirements = {},
): Pick<ContainerStatus, "resources" | "allocatedResources"> {
  const allocated = spec.resources?.requests ?? {};
  return {
    ...(Object.keys(allocated).length === 0 ? {} : { allocatedResources: allocated }),
    resources: {
      ...(limits === undefined || Object.keys(limits).length === 0 ? {} : { limits }),
      ...(requests === undefined || Object.keys(requests).length === 0 ? {} : { requests }),
    },
  };
}

/** Fields that only newer runtimes report. */
function makeRuntimeFields({ user, stopSignal }: ObservedContainer): Pick<ContainerStatus, "user" | "stopSignal"> {
  const linux = user?.linux;
  const groups = (linux?.supplementalGroups ?? []).map(Number);
  const ids = { uid: Number(linux?.uid ?? 0n), gid: Number(linux?.gid ?? 0n) };
  return {
    ...(linux === undefined
      ? {}
      : { user: { linux: { ...ids, ...(groups.length === 0 ? {} : { supplementalGroups: groups }) } } }),
    ...(stopSignal === undefined ? {} : { stopSignal: toApiSignal(stopSignal) }),
  };
}

function makeMountFields(
  spec: Container,
  observed: readonly ObservedMount[] = [],
): Pick<ContainerStatus, "volumeMounts"> {
  const mounts = spec.volumeMounts ?? [];
  if (mounts.length === 0) return {};
  return {
    volumeMounts: mounts.map((mount) => ({
      name: mount.name,
      mountPath: mount.mountPath,
      ...(mount.readOnly === true
        ? { readOnly: true, recursiveReadOnly: isRecursive(mount, observed) ? "Enabled" : "Disabled" }
        : {}),
    })),
  };
}

function isRecursive({ mountPath }: VolumeMount, observed: readonly ObservedMount[]): boolean {
  const path = mountPath.startsWith("/") ? mountPath : `/${mountPath}`;
  return observed.some(({ containerPath, recursiveReadOnly }) => containerPath === path && recursiveReadOnly === true);
}
