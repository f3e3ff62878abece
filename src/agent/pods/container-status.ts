/** The API's view of one container, from the spec and what was observed. */

import type { Container } from "../../api/core/container.ts";
import type { ContainerState, ContainerStateTerminated, ContainerStatus } from "../../api/core/container-status.ts";
import { timeOf } from "../../schema/time.ts";
import type { Observation, ObservedContainer } from "../runtime/observation.ts";
import { isSidecar } from "./pod-fields.ts";

/** Why a container does not run although it should: `CrashLoopBackOff`, `ErrImagePull`, … */
export interface WaitingReason {
  readonly reason: string;
  readonly message: string;
}

export interface ContainerView {
  readonly spec: Container;
  readonly init: boolean;
  readonly observation: Observation;
  /** What it shows before its first start. */
  readonly defaultReason: "ContainerCreating" | "PodInitializing";
  readonly waiting: WaitingReason | undefined;
  /** `containerd`, for `containerd://<id>`. */
  readonly runtimeName: string;
  readonly readyProbe: (container: Container, id: string) => boolean;
  readonly startedProbe: (container: Container, id: string) => boolean;
  /** The pod has ended: what never ran or was lost is not waited for. */
  readonly ended: boolean;
  /** What the API server knows of the container; it survives the loss of the runtime's records. */
  readonly previous: ContainerStatus | undefined;
}

export function containerStatus(view: ContainerView): ContainerStatus {
  const { spec, observation, waiting } = view;
  const runs = observation.containers.filter((each) => each.name === spec.name);
  const current = runs[0];
  const last = runs.find((each, index) => index > 0 && each.state === "exited");
  if (current === undefined) return withoutContainer(view);
  const identifier = `${view.runtimeName}://${current.id}`;
  const observed = stateOf(current, view);
  const waits = waiting !== undefined && observed.running === undefined && !view.ended;
  const state: ContainerState = waits ? { waiting: waitingState(waiting) } : observed;
  const lastTerminated = waits && observed.terminated !== undefined ? observed.terminated : terminated(last, view);
  const started = current.state === "running" && view.startedProbe(spec, current.id);
  return {
    name: spec.name,
    state,
    ...lastStateOf(view, lastTerminated),
    ready: isReady(view, current, started),
    restartCount: current.restartCount,
    image: current.image === "" ? (spec.image ?? "") : current.image,
    imageID: current.imageId,
    containerID: identifier,
    started,
    ...resourceFields(spec),
    ...mountFields(spec),
  };
}

/** The last termination, if there was one: an empty struct reads back as an absent one. */
function lastStateOf(view: ContainerView, last?: ContainerStateTerminated): Pick<ContainerStatus, "lastState"> {
  const lastState = last === undefined ? view.previous?.lastState : { terminated: last };
  return lastState === undefined ? {} : { lastState };
}

function isReady(view: ContainerView, current: ObservedContainer, started: boolean): boolean {
  if (view.init && !isSidecar(view.spec)) return current.state === "exited" && current.exitCode === 0;
  return started && view.readyProbe(view.spec, current.id);
}

function withoutContainer(view: ContainerView): ContainerStatus {
  const { spec, previous } = view;
  const base = {
    name: spec.name,
    ready: false,
    restartCount: previous?.restartCount ?? 0,
    image: spec.image ?? "",
    imageID: "",
    started: false,
    ...mountFields(spec),
  };
  const ran = previous?.state?.running ?? previous?.state?.terminated;
  if (ran !== undefined && previous !== undefined && (view.ended || previous.state?.terminated !== undefined)) {
    if (previous.state?.terminated !== undefined) return previous;
    return { ...previous, ready: false, started: false, state: { terminated: lost("terminated") } };
  }
  if (view.ended && !view.init) {
    return { ...base, state: { terminated: lost("terminated") }, ...lastStateOf(view) };
  }
  const reason = view.waiting ?? { reason: view.defaultReason, message: "" };
  return { ...base, state: { waiting: waitingState(reason) }, ...lastStateOf(view) };
}

function lost(when: string): ContainerStateTerminated {
  return {
    exitCode: 137,
    reason: "ContainerStatusUnknown",
    message: `The container could not be located when the pod was ${when}`,
  };
}

function waitingState(reason: WaitingReason): { reason: string; message?: string } {
  return { reason: reason.reason, ...(reason.message === "" ? {} : { message: reason.message }) };
}

function stateOf(container: ObservedContainer, view: ContainerView): ContainerState {
  if (container.state === "running") return { running: { startedAt: timeOf(container.startedAt) } };
  const ended = terminated(container, view);
  return ended === undefined ? { waiting: { reason: view.defaultReason } } : { terminated: ended };
}

function terminated(
  container: ObservedContainer | undefined,
  view: Pick<ContainerView, "runtimeName">,
): ContainerStateTerminated | undefined {
  if (container?.state !== "exited") return undefined;
  return {
    exitCode: container.exitCode,
    ...(container.reason === "" ? {} : { reason: container.reason }),
    ...(container.message === "" ? {} : { message: container.message }),
    startedAt: timeOf(container.startedAt),
    finishedAt: timeOf(container.finishedAt),
    containerID: `${view.runtimeName}://${container.id}`,
  };
}

function resourceFields(spec: Container): Pick<ContainerStatus, "resources" | "allocatedResources"> {
  const { limits, requests } = spec.resources ?? {};
  const allocated = requests ?? {};
  return {
    ...(Object.keys(allocated).length === 0 ? {} : { allocatedResources: allocated }),
    resources: {
      ...(limits === undefined || Object.keys(limits).length === 0 ? {} : { limits }),
      ...(requests === undefined || Object.keys(requests).length === 0 ? {} : { requests }),
    },
  };
}

function mountFields(spec: Container): Pick<ContainerStatus, "volumeMounts"> {
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
