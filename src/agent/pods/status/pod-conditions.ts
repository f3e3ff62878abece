import type { ContainerStatus } from "../../../api/core/container/status.ts";
import type { Pod, PodCondition } from "../../../api/core/pod/schema.ts";
import { formatTime } from "../../../schema/value/time.ts";
import type { Observation } from "../../runtime/observation.ts";
import { initContainers, isSidecar } from "../pod-fields.ts";
import type { WaitingReason } from "./container-status.ts";
import type { PhaseInput, PodPhase } from "./pod-phase.ts";

export interface ConditionsInput extends PhaseInput {
  readonly observation: Observation;
  readonly now: number;
  /** Message of the condition DisruptionTarget; set when the pod ends for a reason outside of it. */
  readonly disruption: string | undefined;
  readonly resize: ResizeProgress;
}

export interface ResizeProgress {
  /** Why the node does not allocate the requested resources. */
  readonly pending: WaitingReason | undefined;
  /** A container does not have its allocated resources yet. */
  readonly isInProgress: boolean;
  /** The error of the last attempt to apply them. */
  readonly problem: string | undefined;
}

type ConditionValue = Pick<PodCondition, "status" | "reason" | "message">;

export function computeConditions(
  input: ConditionsInput,
  phase: PodPhase,
  inits: readonly ContainerStatus[],
  apps: readonly ContainerStatus[],
): readonly PodCondition[] {
  const { pod, observation } = input;
  const specs = initContainers(pod);
  const counted = [...inits.filter((_, index) => specs[index] !== undefined && isSidecar(specs[index])), ...apps];
  const containersReady = computeContainersReady(phase, counted);
  const networked = observation.sandboxes.some((each) => each.ready && (each.hostNetwork || each.ips.length > 0));
  const values: readonly (readonly [string, ConditionValue])[] = [
    ...makeResizeConditions(input.resize),
    ...makeDisruptionConditions(input),
    ["PodReadyToStartContainers", { status: networked && !input.isTerminated ? "True" : "False" }],
    ["Initialized", computeInitialized(input, phase, inits, apps)],
    ["Ready", computeReady(pod, containersReady)],
    ["ContainersReady", containersReady],
    ["PodScheduled", { status: "True" }],
  ];
  return values.map(([type, value]) => makeCondition(type, value, input));
}

function makeCondition(type: string, value: ConditionValue, input: ConditionsInput): PodCondition {
  const before = input.previous?.conditions?.find((each) => each.type === type);
  const now = formatTime(input.now);
  if (isResizeCondition(type)) {
    const isSame = before?.reason === value.reason;
    const lastProbeTime = (isSame && before?.message === value.message ? before?.lastProbeTime : undefined) ?? now;
    return {
      type,
      ...value,
      lastProbeTime,
      lastTransitionTime: (isSame ? before?.lastTransitionTime : undefined) ?? now,
    };
  }
  const since = before?.status === value.status ? before.lastTransitionTime : undefined;
  return { type, ...value, lastTransitionTime: since ?? now };
}

function computeContainersReady(phase: PodPhase, statuses: readonly ContainerStatus[]): ConditionValue {
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

/** Other controllers write the conditions of readiness gates to the pod. */
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
  input: ConditionsInput,
  phase: PodPhase,
  inits: readonly ContainerStatus[],
  apps: readonly ContainerStatus[],
): ConditionValue {
  if (phase === "Succeeded") return { status: "True", reason: "PodCompleted" };
  const specs = initContainers(input.pod);
  const incomplete = inits.filter((each, index) => {
    const spec = specs[index];
    return spec !== undefined && isSidecar(spec) ? each.started !== true : !each.ready;
  });
  const began = apps.some(({ state }) => state?.running !== undefined || state?.terminated !== undefined);
  if (incomplete.length === 0 || began) return { status: "True" };
  return {
    status: "False",
    reason: "ContainersNotInitialized",
    message: `containers with incomplete status: [${incomplete.map((each) => each.name).join(" ")}]`,
  };
}

function makeDisruptionConditions({ disruption }: ConditionsInput): readonly (readonly [string, ConditionValue])[] {
  if (disruption === undefined) return [];
  return [["DisruptionTarget", { status: "True", reason: "TerminationByKubelet", message: disruption }]];
}

export function isResizeCondition(type: string): boolean {
  return type === "PodResizePending" || type === "PodResizeInProgress";
}

function makeResizeConditions({
  pending,
  isInProgress,
  problem,
}: ResizeProgress): readonly (readonly [string, ConditionValue])[] {
  const error = problem === undefined ? {} : { reason: "Error", message: problem };
  return [
    ...(pending === undefined ? [] : [["PodResizePending", { status: "True", ...pending }] as const]),
    ...(isInProgress ? [["PodResizeInProgress", { status: "True", ...error }] as const] : []),
  ];
}
