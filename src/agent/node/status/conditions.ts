/** Computes the node's conditions. */
import type { NodeCondition } from "../../../api/core/node/schema.ts";
import { TUNNEL_CONDITION, TUNNEL_DISABLED } from "../../../api/core/node/tunnel.ts";
import type { StatusResponse } from "../../runtime/cri/runtime-status.ts";
import { findUnreadyConditions } from "../../runtime/readiness.ts";

export interface ConditionInput {
  /** Types of the pressure conditions that are true. */
  readonly pressures: readonly string[];
  /** Undefined when the runtime does not respond. */
  readonly runtime: StatusResponse | undefined;
  /** Why the lists of the runtime's containers (PLEG) are out of date; undefined when they are not. */
  readonly relistProblem: string | undefined;
  /** Whether the machine shuts down. */
  readonly isShuttingDown: boolean;
  /** What is wrong with manifests of static pods, one line each. */
  readonly manifestProblems: readonly string[];
  /** Of the tunnel; undefined without one. */
  readonly tunnel?: ConditionState | undefined;
  /** RFC 3339 */
  readonly now: string;
  readonly previous: readonly NodeCondition[];
}

/** A condition without its times. */
export interface ConditionState {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

export function computeNodeConditions(input: ConditionInput): readonly NodeCondition[] {
  return [
    memoryPressure(input),
    diskPressure(input),
    pidPressure(input),
    ...manifestProblem(input),
    ...tunnel(input),
    readiness(input),
  ].map((verdict) => {
    const before = input.previous.find((each) => each.type === verdict.type);
    const since = before?.status === verdict.status ? before.lastTransitionTime : undefined;
    return { ...verdict, lastHeartbeatTime: input.now, lastTransitionTime: since ?? input.now };
  });
}

function memoryPressure({ pressures }: ConditionInput): ConditionState {
  return pressures.includes("MemoryPressure")
    ? pressure("MemoryPressure", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available")
    : noPressure("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available");
}

function diskPressure({ pressures }: ConditionInput): ConditionState {
  return pressures.includes("DiskPressure")
    ? pressure("DiskPressure", "KubeletHasDiskPressure", "kubelet has disk pressure")
    : noPressure("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure");
}

function pidPressure({ pressures }: ConditionInput): ConditionState {
  return pressures.includes("PIDPressure")
    ? pressure("PIDPressure", "KubeletHasInsufficientPID", "kubelet has insufficient PID available")
    : noPressure("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available");
}

const PROBLEMS_MAX = 8;

/** Reported from the first problem on. */
function manifestProblem({ manifestProblems, previous }: ConditionInput): readonly ConditionState[] {
  const type = "ManifestProblem";
  if (manifestProblems.length > 0) {
    const message = manifestProblems.slice(0, PROBLEMS_MAX).join("; ");
    return [{ type, status: "True", reason: "InvalidManifest", message }];
  }
  if (!previous.some((each) => each.type === type)) return [];
  return [{ type, status: "False", reason: "ManifestsValid", message: "all manifests can be read" }];
}

/** After a start without a tunnel, the condition of an earlier one is replaced. */
function tunnel({ tunnel, previous }: ConditionInput): readonly ConditionState[] {
  if (tunnel !== undefined) return [tunnel];
  if (!previous.some(({ type }) => type === TUNNEL_CONDITION)) return [];
  const message = "the agent runs without a tunnel";
  return [{ type: TUNNEL_CONDITION, status: "False", reason: TUNNEL_DISABLED, message }];
}

function pressure(type: string, reason: string, message: string): ConditionState {
  return { type, status: "True", reason, message };
}

function noPressure(type: string, reason: string, message: string): ConditionState {
  return { type, status: "False", reason, message };
}

function readiness({ runtime, relistProblem, isShuttingDown }: ConditionInput): ConditionState {
  const problems: string[] = [];
  if (runtime === undefined) problems.push("container runtime is down");
  if (relistProblem !== undefined) problems.push(`PLEG is not healthy: ${relistProblem}`);
  problems.push(...findUnreadyConditions(runtime));
  if (isShuttingDown) problems.push("node is shutting down");
  return problems.length === 0
    ? { type: "Ready", status: "True", reason: "KubeletReady", message: "kubelet is posting ready status" }
    : { type: "Ready", status: "False", reason: "KubeletNotReady", message: aggregate(problems) };
}

/** As Go's aggregated errors: in brackets if there are several. */
function aggregate(problems: readonly string[]): string {
  const distinct = [...new Set(problems)];
  return distinct.length === 1 ? `${distinct[0]}` : `[${distinct.join(", ")}]`;
}
