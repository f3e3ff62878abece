/** Computes the actions that reconcile a pod's observed containers with its spec. Pure and level-triggered. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Observation, ObservedContainer, ObservedSandbox } from "../../runtime/observation.ts";
import { containerHash } from "../containers/container-hash.ts";
import {
  appContainers,
  type ContainerRole,
  ephemeralContainers,
  initContainers,
  isSidecar,
  restartPolicy,
} from "../pod-fields.ts";
import type { RestartBackoff } from "./restart-backoff.ts";

export interface PlannedStart {
  readonly spec: Container;
  readonly role: ContainerRole;
  /** Number of earlier runs of the container. */
  readonly restartCount: number;
  /** End of its last run, milliseconds; undefined for the first start. */
  readonly finishedAt: number | undefined;
}

export interface PlannedKill {
  readonly container: ObservedContainer;
  readonly role: ContainerRole;
  /** Message of the Killing event. */
  readonly message: string;
  /** The container restarts whatever its exit code; at once, unless its back-off is running. */
  readonly restart: boolean;
}

export interface PlannedWait {
  readonly spec: Container;
  readonly role: ContainerRole;
  /** On the monotonic clock. */
  readonly until: number;
  /** Set for a crash loop; a retry after an error keeps the reason that the status shows already. */
  readonly crashLoopDelayMs: number | undefined;
}

export interface Plan {
  /** The sandbox to use; undefined: create one. */
  readonly sandbox: ObservedSandbox | undefined;
  /** Sandboxes to stop before a new one is created. */
  readonly staleSandboxes: readonly ObservedSandbox[];
  readonly sandboxAttempt: number;
  readonly kills: readonly PlannedKill[];
  readonly starts: readonly PlannedStart[];
  readonly waits: readonly PlannedWait[];
  /** No container of the pod will run again. */
  readonly isFinished: boolean;
}

export type Health = "ok" | "liveness" | "startup";

export interface PlanInput {
  readonly pod: Pod;
  readonly observation: Observation;
  /** On the monotonic clock. */
  readonly now: number;
  readonly backoff: RestartBackoff;
  /** Containers that failed to start: when to try again. */
  readonly retryAt: ReadonlyMap<string, number>;
  /** The probe that requires the container to be killed, if any. */
  readonly health: (id: string) => Health;
  /** Whether the startup probe, if any, has passed. */
  readonly hasStarted: (container: Container, id: string) => boolean;
  /** Containers that were killed to be restarted at once, whatever their exit code. */
  readonly toRestart: ReadonlySet<string>;
  /** Whether the container must restart to get the resources that are allocated to it. */
  readonly needsResizeRestart: (container: Container) => boolean;
}

interface PlanDraft {
  readonly kills: PlannedKill[];
  readonly starts: PlannedStart[];
  readonly waits: PlannedWait[];
}

/** `name/hash`: a changed container starts without the delay of the old one. */
export function backoffKey(container: Container): string {
  return `${container.name}/${containerHash(container)}`;
}

export function latestRun(observation: Observation, name: string): ObservedContainer | undefined {
  return observation.containers.find((each) => each.name === name);
}

export function planPod(input: PlanInput): Plan {
  const { pod, observation } = input;
  const ready = observation.sandboxes.filter((each) => each.ready);
  const sandbox = ready.length === 1 ? ready[0] : undefined;
  const base = {
    sandbox,
    staleSandboxes: sandbox === undefined ? observation.sandboxes.filter((each) => each.ready) : ready.slice(1),
    sandboxAttempt: observation.sandboxes.reduce((most, each) => Math.max(most, each.attempt + 1), 0),
  };
  const draft: PlanDraft = { kills: [], starts: [], waits: [] };
  if (sandbox === undefined && isFinished(input)) {
    return { ...base, ...draft, isFinished: true };
  }
  if (sandbox !== undefined) planEphemeral(input, draft);
  const init = planInit(input, draft, sandbox);
  if (init === "failed") {
    return { ...base, kills: [], starts: [], waits: [], isFinished: true };
  }
  if (init === "done") {
    for (const spec of appContainers(pod)) {
      planContainer(input, draft, spec, "containers", restartPolicy(pod));
    }
    // A pod whose last running containers are to be killed for good terminates as a whole.
    const ending = restartPolicy(pod) === "Never" ? draft.kills.map(({ container }) => container) : [];
    const isOut = (container: ObservedContainer | undefined): boolean =>
      isFinal(input, container) || (container !== undefined && ending.includes(container));
    const killsEnd = draft.kills.every(({ container }) => ending.includes(container));
    if (killsEnd && appContainers(pod).every((spec) => isOut(latestRun(observation, spec.name)))) {
      return { ...base, kills: [], starts: [], waits: [], isFinished: true };
    }
  }
  return { ...base, ...draft, isFinished: false };
}

/** A pod that may not restart is finished when it lost its sandbox after it had containers. */
function isFinished(input: PlanInput): boolean {
  const { pod, observation } = input;
  if (appContainers(pod).every((spec) => isFinal(input, latestRun(observation, spec.name)))) return true;
  return restartPolicy(pod) === "Never" && observation.containers.length > 0;
}

function isFinal({ pod, toRestart }: PlanInput, container: ObservedContainer | undefined): boolean {
  if (container?.state !== "exited" || toRestart.has(container.id)) return false;
  const policy = restartPolicy(pod);
  return policy === "Never" || (policy === "OnFailure" && container.exitCode === 0);
}

/** Ephemeral containers start in every phase of the pod, once. */
function planEphemeral(input: PlanInput, draft: PlanDraft): void {
  for (const spec of ephemeralContainers(input.pod)) {
    const found = latestRun(input.observation, spec.name);
    if (found === undefined || found.state === "created") planStart(input, draft, spec, "ephemeralContainers", found);
  }
}

/** `waiting`: an init container still has to finish, or a sidecar to start. */
function planInit(
  input: PlanInput,
  draft: PlanDraft,
  sandbox: ObservedSandbox | undefined,
): "done" | "waiting" | "failed" {
  const { pod, observation } = input;
  // If an app container ran in this sandbox, the init containers had completed, even if they are removed by now.
  const initialized =
    sandbox !== undefined &&
    appContainers(pod).some((spec) =>
      observation.containers.some((each) => each.name === spec.name && each.sandboxId === sandbox.id),
    );
  const inits = initContainers(pod).map((spec) => {
    const newest = latestRun(observation, spec.name);
    return { spec, newest, current: newest?.sandboxId === sandbox?.id ? newest : undefined };
  });
  const last = inits.findLastIndex(({ current }) => current !== undefined);
  for (const [index, { spec, newest, current }] of inits.entries()) {
    // As in Kubernetes, an init container that has begun does not wait for earlier ones again.
    const isPassed = initialized || index < last;
    if (isSidecar(spec)) {
      planContainer(input, draft, spec, "initContainers", "Always");
      if (!isPassed && !(current?.state === "running" && input.hasStarted(spec, current.id))) return "waiting";
      continue;
    }
    if (isPassed || (current?.state === "exited" && current.exitCode === 0)) continue;
    const isOver = current?.state === "exited" || current?.state === "unknown";
    if (isOver && restartPolicy(pod) === "Never") return "failed";
    if (current?.state === "running") return "waiting";
    if (current?.state === "unknown") draft.kills.push(makeUnknownKill(current, "initContainers"));
    else planStart(input, draft, spec, "initContainers", newest);
    return "waiting";
  }
  return "done";
}

function planContainer(
  input: PlanInput,
  draft: PlanDraft,
  spec: Container,
  role: ContainerRole,
  policy: "Always" | "OnFailure" | "Never",
): void {
  const found = latestRun(input.observation, spec.name);
  if (found?.state === "running") {
    const kill = planKill(input, spec, role, found, policy);
    if (kill !== undefined) draft.kills.push(kill);
    return;
  }
  if (found?.state === "unknown") {
    draft.kills.push(makeUnknownKill(found, role));
    return;
  }
  if (found?.state === "exited" && !input.toRestart.has(found.id)) {
    if (policy === "Never" || (policy === "OnFailure" && found.exitCode === 0)) return;
  }
  planStart(input, draft, spec, role, found);
}

function makeUnknownKill(container: ObservedContainer, role: ContainerRole): PlannedKill {
  const subject = role === "initContainers" ? "Init container" : "Container";
  const message = `${subject} is in "unknown" state, try killing it before restart`;
  return { container, role, message, restart: true };
}

function planKill(
  input: PlanInput,
  spec: Container,
  role: ContainerRole,
  found: ObservedContainer,
  policy: string,
): PlannedKill | undefined {
  if (found.hash !== "" && found.hash !== containerHash(spec)) {
    const message =
      role === "initContainers"
        ? `Init container ${spec.name} definition changed`
        : `Container ${spec.name} definition changed, will be restarted`;
    return { container: found, role, message, restart: true };
  }
  if (input.needsResizeRestart(spec)) {
    return { container: found, role, message: `Container ${spec.name} resize requires restart`, restart: true };
  }
  const health = input.health(found.id);
  if (health === "ok") return undefined;
  const restart = policy !== "Never";
  const message =
    role === "initContainers"
      ? `Init container ${spec.name} failed ${health} probe`
      : `Container ${spec.name} failed ${health} probe${restart ? ", will be restarted" : ""}`;
  return { container: found, role, message, restart };
}

function planStart(
  input: PlanInput,
  draft: PlanDraft,
  spec: Container,
  role: ContainerRole,
  found: ObservedContainer | undefined,
): void {
  const atOnce = found !== undefined && input.toRestart.has(found.id);
  const finishedAt = found?.state === "exited" && !atOnce ? found.finishedAt : undefined;
  const retryAt = input.retryAt.get(spec.name);
  if (retryAt !== undefined && input.now < retryAt) {
    draft.waits.push({ spec, role, until: retryAt, crashLoopDelayMs: undefined });
    return;
  }
  if (finishedAt !== undefined) {
    const waiting = input.backoff.remainingDelay(backoffKey(spec), finishedAt);
    if (waiting !== undefined) {
      draft.waits.push({ spec, role, until: waiting.until, crashLoopDelayMs: waiting.delayMs });
      return;
    }
  }
  // A container that was created but never ran does not count.
  const restartCount = found === undefined ? 0 : found.restartCount + (found.state === "created" ? 0 : 1);
  draft.starts.push({ spec, role, restartCount, finishedAt });
}
