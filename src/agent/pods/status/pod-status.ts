/** The API's view of a pod, from its spec and what was observed. */

import type { Container } from "../../../api/core/container/schema.ts";
import type { ContainerStateTerminated, ContainerStatus } from "../../../api/core/container/status.ts";
import type { Pod, PodCondition, PodStatus } from "../../../api/core/pod/schema.ts";
import type { ResourceRequirements } from "../../../api/core/resources/schema.ts";
import { formatTime } from "../../../schema/value/time.ts";
import type { Observation } from "../../runtime/observation.ts";
import {
  appContainers,
  type ContainerRole,
  ephemeralContainers,
  initContainers,
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

export interface PodStatusInput {
  readonly pod: Pod;
  readonly observation: Observation;
  readonly now: number;
  /** When the agent first acted on the pod, milliseconds. */
  readonly startTime: number;
  readonly hostIps: readonly string[];
  readonly runtimeName: string;
  readonly waitingReasons: ReadonlyMap<string, WaitingReason>;
  readonly isReady: ContainerStatusInput["isReady"];
  readonly hasStarted: ContainerStatusInput["hasStarted"];
  /** Whether the run of a container was ended to be followed at once by the next. */
  readonly isReplaced: ContainerStatusInput["isReplaced"];
  /** Nothing is started again. */
  readonly isTerminating: boolean;
  /** All containers have been stopped for good. */
  readonly isTerminated: boolean;
  /** Whether init containers had all had their turn when the pod began to end. */
  readonly initialized: boolean;
  /** Why the pod fails whatever its containers did: `DeadlineExceeded`, … */
  readonly failure: WaitingReason | undefined;
  /** Why it is not the pod's own fault that it ends. */
  readonly disruption: string | undefined;
  /** What containers have, by name; undefined for those that never ran. */
  readonly actualResources: (name: string) => ResourceRequirements | undefined;
  readonly resize: ResizeProgress;
  /** The status last given out; conditions keep their transition times, and a phase does not go back. */
  readonly previous: PodStatus | undefined;
}

export interface ResizeProgress {
  /** Why the node does not give what is asked for. */
  readonly pending: WaitingReason | undefined;
  /** What is granted has yet to reach some container. */
  readonly isInProgress: boolean;
  /** What went wrong meanwhile. */
  readonly problem: string | undefined;
}

type Phase = NonNullable<PodStatus["phase"]>;

export function computePodStatus(input: PodStatusInput): PodStatus {
  const { pod, observation, previous } = input;
  // What is told of a static pod that ends is told as if it went on.
  const ending = input.isTerminating && !isStatic(pod);
  const known: Readonly<Record<ContainerRole, readonly ContainerStatus[] | undefined>> = {
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
      willRestart: (exitCode) => !ending && role !== "ephemeralContainers" && willRestart(pod, spec, exitCode),
      isReplaced: input.isReplaced,
      previous: known[role]?.find((each) => each.name === spec.name),
    });
  const inits = initContainers(pod).map(computeStatus("initContainers"));
  const apps = appContainers(pod).map(computeStatus("containers"));
  const ephemeral = ephemeralContainers(pod).map(computeStatus("ephemeralContainers"));
  const published = input.isTerminated ? terminateStatuses(inits, apps, input.initialized) : { inits, apps };
  const computed = input.failure === undefined ? computePhase(input, inits, apps) : "Failed";
  const phase = choosePublishedPhase(computed, input);
  const hostIps = input.hostIps.map((ip) => ({ ip }));
  const podIps = findPodIps(input).map((ip) => ({ ip }));
  return {
    phase,
    conditions: computeConditions(input, computed, inits, apps),
    ...(input.failure === undefined ? {} : { reason: input.failure.reason, message: input.failure.message }),
    ...(hostIps[0] === undefined ? {} : { hostIP: hostIps[0].ip, hostIPs: hostIps }),
    ...(podIps[0] === undefined ? {} : { podIP: podIps[0].ip, podIPs: podIps }),
    startTime: formatTime(input.startTime),
    ...(inits.length === 0 ? {} : { initContainerStatuses: published.inits }),
    containerStatuses: published.apps,
    ...(ephemeral.length === 0 ? {} : { ephemeralContainerStatuses: ephemeral }),
    qosClass: previous?.qosClass ?? getPodQosClass(pod),
  };
}

function willRestart(pod: Pod, spec: Container, exitCode: number): boolean {
  const policy = isSidecar(spec) ? "Always" : restartPolicy(pod);
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

/** Whether the pod's own containers had their turn, as far as a status tells. */
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

/** A pod that was turned away before anything of it ran. */
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

/** A terminal phase shows only once everything has stopped, and never goes back. */
function choosePublishedPhase(computed: Phase, input: PodStatusInput): Phase {
  const before = input.previous?.phase;
  if (before === "Succeeded" || before === "Failed") return before;
  const terminal = computed === "Succeeded" || computed === "Failed";
  if (input.isTerminated) return terminal || isStatic(input.pod) ? computed : "Failed";
  return terminal ? (before ?? "Pending") : computed;
}

/** As Kubernetes' agent counts: what waits for its first run, what runs, what has stopped, and how it ended. */
function computePhase(
  { pod, previous, isTerminated: ended }: PodStatusInput,
  inits: readonly ContainerStatus[],
  apps: readonly ContainerStatus[],
): Phase {
  const policy = restartPolicy(pod);
  const specs = initContainers(pod);
  const isSidecarAt = (index: number): boolean => specs[index] !== undefined && isSidecar(specs[index]);
  const regular = inits.filter((_, index) => !isSidecarAt(index));
  const sidecars = inits.filter((_, index) => isSidecarAt(index));
  if (policy === "Never" && regular.some((each) => (lastTermination(each)?.exitCode ?? 0) !== 0)) return "Failed";
  const initialized = previous?.conditions?.some(({ type, status }) => type === "Initialized" && status === "True");
  const pending = regular.some((each) => lastTermination(each) === undefined);
  const starting = sidecars.some((each) => each.started !== true && lastTermination(each) === undefined);
  if (pending || (starting && initialized !== true)) return "Pending";
  if ([...sidecars, ...apps].some((each) => each.state?.waiting !== undefined && lastTermination(each) === undefined)) {
    return "Pending";
  }
  if ([...sidecars, ...apps].some((each) => each.state?.running !== undefined)) return "Running";
  const ends = apps.map(lastTermination);
  if (ends.length === 0 || ends.some((each) => each === undefined)) return "Pending";
  const succeeded = apps.every((each) => each.state?.terminated?.exitCode === 0);
  // Nothing is started again in a pod that has ended; the phase of a static one stays open.
  if (ended && !isStatic(pod)) return succeeded ? "Succeeded" : "Failed";
  if (policy === "Always") return "Running";
  if (succeeded) return "Succeeded";
  return policy === "Never" ? "Failed" : "Running";
}

/** How it ended; a container that waits for its next run counts as stopped. */
function lastTermination({ state, lastState }: ContainerStatus): ContainerStateTerminated | undefined {
  if (state?.running !== undefined) return undefined;
  return state?.terminated ?? lastState?.terminated;
}

type ConditionValue = Pick<PodCondition, "status" | "reason" | "message">;

function computeConditions(
  input: PodStatusInput,
  phase: Phase,
  inits: readonly ContainerStatus[],
  apps: readonly ContainerStatus[],
): readonly PodCondition[] {
  const { pod, observation } = input;
  const specs = initContainers(pod);
  const counted = [...inits.filter((_, index) => specs[index] !== undefined && isSidecar(specs[index])), ...apps];
  const containersReady = computeContainersReady(phase, counted);
  const networked = observation.sandboxes.some((each) => each.ready && (each.hostNetwork || each.ips.length > 0));
  const verdicts: readonly (readonly [string, ConditionValue])[] = [
    ...resizeConditions(input.resize),
    ...disruptionConditions(input),
    ["PodReadyToStartContainers", { status: networked && !input.isTerminated ? "True" : "False" }],
    ["Initialized", computeInitialized(input, phase, inits, apps)],
    ["Ready", computeReady(pod, containersReady)],
    ["ContainersReady", containersReady],
    ["PodScheduled", { status: "True" }],
  ];
  return verdicts.map(([type, verdict]) => makeCondition(type, verdict, input));
}

function makeCondition(type: string, verdict: ConditionValue, input: PodStatusInput): PodCondition {
  const before = input.previous?.conditions?.find((each) => each.type === type);
  const since = before?.status === verdict.status ? before.lastTransitionTime : undefined;
  return { type, ...verdict, lastTransitionTime: since ?? formatTime(input.now) };
}

function computeContainersReady(phase: Phase, statuses: readonly ContainerStatus[]): ConditionValue {
  if (phase === "Succeeded") return { status: "False", reason: "PodCompleted" };
  if (phase === "Failed") return { status: "False", reason: "PodFailed" };
  const unready = statuses.filter((each) => !each.ready).map((each) => each.name);
  if (unready.length === 0) return { status: "True" };
  return {
    status: "False",
    reason: "ContainersNotReady",
    message: `containers with unready status: [${unready.join(" ")}]`,
  };
}

/** Conditions of readiness gates are others', who write them to the pod. */
function computeReady(pod: Pod, containers: ConditionValue): ConditionValue {
  if (containers.status !== "True") return containers;
  const gates = pod.spec?.readinessGates ?? [];
  const known = pod.status?.conditions ?? [];
  const problems = gates.flatMap(({ conditionType }) => {
    const found = known.find((each) => each.type === conditionType);
    if (found === undefined)
      return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`];
    return found.status === "True"
      ? []
      : [`the status of pod readiness gate "${conditionType}" is not "True", but ${found.status}`];
  });
  if (problems.length === 0) return { status: "True" };
  return { status: "False", reason: "ReadinessGatesNotReady", message: problems.join(", ") };
}

function computeInitialized(
  input: PodStatusInput,
  phase: Phase,
  inits: readonly ContainerStatus[],
  apps: readonly ContainerStatus[],
): ConditionValue {
  if (phase === "Succeeded") return { status: "True", reason: "PodCompleted" };
  const specs = initContainers(input.pod);
  const incomplete = inits.filter((each, index) => {
    const spec = specs[index];
    return spec !== undefined && isSidecar(spec) ? each.started !== true : !each.ready;
  });
  const began = apps.some((each) => each.containerID !== undefined);
  if (incomplete.length === 0 || began) return { status: "True" };
  return {
    status: "False",
    reason: "ContainersNotInitialized",
    message: `containers with incomplete status: [${incomplete.map((each) => each.name).join(" ")}]`,
  };
}

function disruptionConditions({ disruption }: PodStatusInput): readonly (readonly [string, ConditionValue])[] {
  if (disruption === undefined) return [];
  return [["DisruptionTarget", { status: "True", reason: "TerminationByKubelet", message: disruption }]];
}

function resizeConditions({
  pending,
  isInProgress: going,
  problem,
}: ResizeProgress): readonly (readonly [string, ConditionValue])[] {
  const error = problem === undefined ? {} : { reason: "Error", message: problem };
  return [
    ...(pending === undefined ? [] : [["PodResizePending", { status: "True", ...pending }] as const]),
    ...(going ? [["PodResizeInProgress", { status: "True", ...error }] as const] : []),
  ];
}
