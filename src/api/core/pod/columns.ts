/** The columns of `kubectl get pods`, computed as in Kubernetes' `printPod`. */
import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import { humanDuration } from "../../columns/human-duration.ts";
import type { Column, RowCondition } from "../../kind.ts";
import type { Container } from "../container/schema.ts";
import type { ContainerState, ContainerStatus } from "../container/status.ts";
import type { Pod } from "./schema.ts";

interface PodSummary extends Restarts {
  readonly ready: number;
  readonly total: number;
  readonly reason: string;
}

export const podColumns: readonly Column<Pod>[] = [
  nameColumn,
  column("Ready", (pod) => {
    const { ready, total } = summarize(pod);
    return `${ready}/${total}`;
  }),
  column("Status", (pod) => summarize(pod).reason),
  column("Restarts", (pod, now) => {
    const { restarts, lastRestart } = summarize(pod);
    return restarts === 0 || lastRestart === undefined
      ? `${restarts}`
      : `${restarts} (${humanDuration(now - lastRestart)} ago)`;
  }),
  ageColumn,
  wideColumn("IP", (pod) => pod.status?.podIPs?.[0]?.ip ?? textOrNone(pod.status?.podIP)),
  wideColumn("Node", (pod) => textOrNone(pod.spec?.nodeName)),
  wideColumn("Nominated Node", (pod) => textOrNone(pod.status?.nominatedNodeName)),
  wideColumn("Readiness Gates", readinessGates),
];

/** The row condition of finished pods, which clients may hide or dim. */
export function podRowConditions(pod: Pod): readonly RowCondition[] {
  const reason = pod.status?.phase;
  if (reason !== "Succeeded" && reason !== "Failed") return [];
  const message = reason === "Succeeded" ? "The pod has completed successfully." : "The pod failed.";
  return [{ type: "Completed", status: "True", reason, message }];
}

function textOrNone(text: string | undefined): string {
  return text === undefined || text === "" ? "<none>" : text;
}

function readinessGates(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  const met = gates.filter((gate) => isConditionTrue(pod, gate.conditionType)).length;
  return `${met}/${gates.length}`;
}

function isConditionTrue(pod: Pod, type: string): boolean {
  return pod.status?.conditions?.some((c) => c.type === type && c.status === "True") ?? false;
}

function isSidecar(container: Container | undefined): boolean {
  return container?.restartPolicy === "Always";
}

function summarize(pod: Pod): PodSummary {
  const initSpecs = new Map((pod.spec?.initContainers ?? []).map((c) => [c.name, c]));
  const sidecars = [...initSpecs.values()].filter(isSidecar).length;
  const total = (pod.spec?.containers.length ?? 0) + sidecars;
  const phase = pod.status?.reason || pod.status?.phase || "";
  const gated = pod.status?.conditions?.some((c) => c.type === "PodScheduled" && c.reason === "SchedulingGated");
  const first = gated ? "SchedulingGated" : phase;

  const init = initProgress(pod.status?.initContainerStatuses ?? [], initSpecs);
  // A sidecar that fails later leaves the pod initialized.
  if (init.reason !== undefined && !isConditionTrue(pod, "Initialized")) {
    return { ready: init.readySidecars, total, reason: terminatingReason(pod, init.reason), ...init.all };
  }
  const main = mainProgress(pod);
  return {
    ready: init.readySidecars + main.ready,
    total,
    reason: terminatingReason(pod, main.reason ?? init.reason ?? first),
    restarts: init.sidecars.restarts + main.restarts,
    lastRestart: latestOf(init.sidecars.lastRestart, main.lastRestart),
  };
}

/** Replaces the reason of a pod that is being deleted, unless the pod has finished. */
function terminatingReason(pod: Pod, reason: string): string {
  if (pod.metadata?.deletionTimestamp === undefined) return reason;
  if (pod.status?.reason === "NodeLost") return "Unknown";
  const finished = pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
  return finished ? reason : "Terminating";
}

interface Restarts {
  readonly restarts: number;
  /** The time of the latest one, in milliseconds since 1970; undefined without restarts. */
  readonly lastRestart: number | undefined;
}

interface InitProgress {
  /** Set until all init containers are done: `Init:1/2`, `Init:CrashLoopBackOff`. */
  readonly reason: string | undefined;
  readonly all: Restarts;
  readonly sidecars: Restarts;
  readonly readySidecars: number;
}

function initProgress(statuses: readonly ContainerStatus[], specs: ReadonlyMap<string, Container>): InitProgress {
  let all: Restarts = { restarts: 0, lastRestart: undefined };
  let sidecars = all;
  let readySidecars = 0;
  for (const [index, status] of statuses.entries()) {
    const sidecar = isSidecar(specs.get(status.name));
    all = withRestarts(all, status);
    if (sidecar) sidecars = withRestarts(sidecars, status);
    if (status.state?.terminated?.exitCode === 0) continue;
    if (sidecar && status.started === true) {
      if (status.ready) readySidecars += 1;
      continue;
    }
    return { reason: `Init:${initReason(status.state, index, specs.size)}`, all, sidecars, readySidecars };
  }
  return { reason: undefined, all, sidecars, readySidecars };
}

function withRestarts({ restarts, lastRestart }: Restarts, status: ContainerStatus): Restarts {
  return {
    restarts: restarts + status.restartCount,
    lastRestart: latestOf(lastRestart, finishedAt(status.lastState)),
  };
}

function initReason(state: ContainerState | undefined, index: number, total: number): string {
  if (state?.terminated !== undefined) return terminatedReason(state.terminated);
  const waiting = state?.waiting?.reason ?? "";
  return waiting !== "" && waiting !== "PodInitializing" ? waiting : `${index}/${total}`;
}

function terminatedReason(terminated: NonNullable<ContainerState["terminated"]>): string {
  if (terminated.reason !== undefined && terminated.reason !== "") return terminated.reason;
  const signal = terminated.signal ?? 0;
  return signal !== 0 ? `Signal:${signal}` : `ExitCode:${terminated.exitCode}`;
}

interface MainProgress extends Restarts {
  readonly reason: string | undefined;
  readonly ready: number;
}

/** The first container that is not running determines the reason, as the loop runs from the last to the first. */
function mainProgress(pod: Pod): MainProgress {
  let reason: string | undefined;
  let ready = 0;
  let all: Restarts = { restarts: 0, lastRestart: undefined };
  for (const status of [...(pod.status?.containerStatuses ?? [])].reverse()) {
    all = withRestarts(all, status);
    const waiting = status.state?.waiting?.reason ?? "";
    if (waiting !== "") reason = waiting;
    else if (status.state?.terminated !== undefined) reason = terminatedReason(status.state.terminated);
    else if (status.ready && status.state?.running !== undefined) ready += 1;
  }
  if (reason === "Completed" && ready > 0) reason = isConditionTrue(pod, "Ready") ? "Running" : "NotReady";
  return { reason, ready, ...all };
}

function finishedAt(state: ContainerState | undefined): number | undefined {
  const time = state?.terminated?.finishedAt;
  return time === undefined ? undefined : Date.parse(time);
}

function latestOf(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.max(a, b);
}
