/** The API's view of one container, from the spec and what was observed. */

import type { Container } from "../../../api/core/container/schema.ts";
import type { ContainerState, ContainerStateTerminated, ContainerStatus } from "../../../api/core/container/status.ts";
import type { PodStatus } from "../../../api/core/pod/schema.ts";
import type { ResourceRequirements } from "../../../api/core/resources/schema.ts";
import { formatTime } from "../../../schema/value/time.ts";
import type { Observation, ObservedContainer } from "../../runtime/observation.ts";
import { toApiSignal } from "../containers/stop-signals.ts";
import { type ContainerRole, isSidecar } from "../pod-fields.ts";

/** Why a container does not run although it should: `CrashLoopBackOff`, `ErrImagePull`, … */
export interface WaitingReason {
  readonly reason: string;
  readonly message: string;
  /** Id of the run that it follows, empty if there was none; a newer one makes it void. Undefined: it always holds. */
  readonly after?: string;
}

export interface ContainerStatusInput {
  readonly spec: Container;
  readonly role: ContainerRole;
  /** The resources that it has; undefined when that is what the spec says. */
  readonly actualResources: ResourceRequirements | undefined;
  readonly observation: Observation;
  /** What it shows before its first start. */
  readonly defaultReason: "ContainerCreating" | "PodInitializing";
  readonly waitingReason: WaitingReason | undefined;
  /** `containerd`, for `containerd://<id>`. */
  readonly runtimeName: string;
  readonly isReady: (container: Container, id: string) => boolean;
  readonly hasStarted: (container: Container, id: string) => boolean;
  /** The pod has ended: nothing is waited for any more. */
  readonly isTerminated: boolean;
  /** Whether the container is started again after an end with this exit code. */
  readonly willRestart: (exitCode: number) => boolean;
  /** Whether the run was ended to be followed at once by the next. */
  readonly isReplaced: (id: string) => boolean;
  /** What the API server knows of the container; it survives the loss of the runtime's records. */
  readonly previous: ContainerStatus | undefined;
}

/** Newest first. Between its creation and its start a run is nothing to tell of yet. */
function startedRuns(observation: Observation, name: string): readonly ObservedContainer[] {
  return observation.containers.filter((each) => each.name === name && each.state !== "created");
}

/** Id of the run that a container's status is about; empty when there is none. */
export function currentRunId(observation: Observation, name: string): string {
  return startedRuns(observation, name)[0]?.id ?? "";
}

/** The run that the status calls the last one: that of a container waiting for its restart is the one that ended. */
export function findPreviousRun(
  shown: PodStatus | undefined,
  observation: Observation,
  name: string,
): ObservedContainer | undefined {
  const { initContainerStatuses: inits = [], containerStatuses: apps = [] } = shown ?? {};
  const status = [...inits, ...apps].find((each) => each.name === name);
  const id = status?.lastState?.terminated?.containerID?.replace(/^.*:\/\//, "");
  return observation.containers.find((each) => each.name === name && each.id === id);
}

export function computeContainerStatus(input: ContainerStatusInput): ContainerStatus {
  const { spec, observation } = input;
  const runs = startedRuns(observation, spec.name);
  const current = runs[0];
  const after = input.waitingReason?.after;
  const waiting = after === undefined || after === (current?.id ?? "") ? input.waitingReason : undefined;
  const last = runs.find((each, index) => index > 0 && each.state === "exited");
  if (current === undefined) return computeStatusWithoutRun(input, waiting);
  // One run follows the other as one step: the server takes no end for a step that a start may follow.
  const { previous } = input;
  if (previous?.state?.running !== undefined && waiting === undefined && input.isReplaced(current.id)) return previous;
  const identifier = `${input.runtimeName}://${current.id}`;
  const observed = computeState(current, input);
  const over = observed.terminated !== undefined && !input.willRestart(observed.terminated.exitCode);
  const waits = waiting !== undefined && observed.running === undefined && !input.isTerminated && !over;
  const state: ContainerState = waits ? { waiting: makeWaitingState(waiting) } : observed;
  const lastTerminated =
    waits && observed.terminated !== undefined ? observed.terminated : makeTerminatedState(last, input);
  const started = current.state === "running" && input.hasStarted(spec, current.id);
  return {
    name: spec.name,
    state,
    ...computeLastState(input, lastTerminated, waits ? undefined : identifier),
    ready: isReady(input, current, started),
    restartCount: current.restartCount,
    image: current.image === "" ? (spec.image ?? "") : current.image,
    imageID: current.imageId,
    containerID: identifier,
    ...(input.role === "ephemeralContainers" ? {} : { started }),
    ...makeResourceFields(spec, input.actualResources ?? spec.resources),
    ...makeMountFields(spec),
    ...makeRuntimeFields(current),
  };
}

/**
 * The last termination, if there was one: an empty struct reads back as an absent one. What the server knows is not
 * taken for it when that is the run `shown` as the state.
 */
function computeLastState(
  input: ContainerStatusInput,
  last?: ContainerStateTerminated,
  shown?: string,
): Pick<ContainerStatus, "lastState"> {
  const known = input.previous?.lastState;
  const earlier = known?.terminated?.containerID === shown ? undefined : known;
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
  // The runtime has lost its records; the server still knows how it ended.
  if (previous?.state?.terminated?.containerID !== undefined) return previous;
  const state = previous?.state?.running === undefined ? undefined : previous;
  if (input.isTerminated && state !== undefined) return { ...state, ready: false, started: false };
  const reason = waiting ?? { reason: input.defaultReason, message: "" };
  return { ...base, state: { waiting: makeWaitingState(reason) }, ...computeLastState(input) };
}

/**
 * The statuses of a pod that has ended. Of a container that ran, or that it was the turn of, somebody must have known
 * the end: where nobody does, it counts as failed. Init containers behind the last one that began just wait.
 */
export function terminateStatuses(
  inits: readonly ContainerStatus[],
  apps: readonly ContainerStatus[],
  initialized: boolean,
): { readonly inits: readonly ContainerStatus[]; readonly apps: readonly ContainerStatus[] } {
  const begun = inits.findLastIndex(({ state, lastState }) => state?.waiting === undefined || lastState !== undefined);
  return {
    inits: inits.map((status, place) => (place <= begun ? terminateStatus(status) : status)),
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

function computeState(container: ObservedContainer, view: ContainerStatusInput): ContainerState {
  if (container.state === "running") return { running: { startedAt: formatTime(container.startedAt) } };
  const ended = makeTerminatedState(container, view);
  return ended === undefined ? { waiting: { reason: view.defaultReason } } : { terminated: ended };
}

function makeTerminatedState(
  container: ObservedContainer | undefined,
  view: Pick<ContainerStatusInput, "runtimeName">,
): ContainerStateTerminated | undefined {
  if (container?.state !== "exited") return undefined;
  return {
    exitCode: container.exitCode,
    ...(container.reason === "" ? {} : { reason: container.reason }),
    ...(container.message === "" ? {} : { message: container.message }),
    startedAt: formatTime(container.startedAt),
    finishedAt: formatTime(container.finishedAt),
    containerID: `${view.runtimeName}://${container.id}`,
  };
}

/** What it was granted, and what it has. */
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

/** What only newer runtimes tell of. */
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

function makeMountFields(spec: Container): Pick<ContainerStatus, "volumeMounts"> {
  const mounts = spec.volumeMounts ?? [];
  if (mounts.length === 0) return {};
  return {
    volumeMounts: mounts.map((mount) => ({
      name: mount.name,
      mountPath: mount.mountPath,
      ...(mount.readOnly === true ? { readOnly: true, recursiveReadOnly: "Disabled" } : {}),
    })),
  };
}
