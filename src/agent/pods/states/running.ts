import type { Container } from "../../../api/core/container/schema.ts";
import { killContainer } from "../containers/kill-container.ts";
import type { PodContext } from "../pod-context.ts";
import { allContainers, ephemeralContainers, graceSeconds, podFullName } from "../pod-fields.ts";
import { resizePod } from "../resources/resize.ts";
import { createSandbox } from "../sandbox/create-sandbox.ts";
import { applyPendingReason, recordBackOff, setPendingReason } from "../status/waiting-reasons.ts";
import {
  backoffKey,
  type Plan,
  type PlannedKill,
  type PlannedStart,
  type PlannedWait,
  planPod,
} from "../worker/plan.ts";
import { podState } from "./pod-state.ts";

/**
 * Compares the containers that should run with those that do, acts on one difference, and sleeps when there is none.
 */
export const running = podState({
  name: "running",
  successors: ["mounting", "running", "pulling", "backoff", "terminating"],
  async next(pod) {
    await pod.refresh();
    await resizePod(pod);
    removeStaleRestarts(pod);
    const plan = makePlan(pod);
    const policies = pod.services.networkPolicies?.setPod(pod.pod, plan.sandbox?.ips ?? [], pod.signal);
    // An ephemeral container does not start again; as in Kubernetes, the status keeps why it failed to.
    const planned = [...plan.starts, ...plan.waits].map(({ spec }) => spec);
    const toStart = new Set([...planned, ...ephemeralContainers(pod.pod)].map(({ name }) => name));
    for (const reasons of [pod.memory.waitingReasons, pod.memory.pendingReasons]) {
      for (const name of reasons.keys()) if (!toStart.has(name)) reasons.delete(name);
    }
    if (plan.isFinished) return { to: "terminating" };
    if (plan.kills.length > 0) {
      await Promise.all(plan.kills.map((kill) => killPlanned(pod, kill)));
      return { to: "running" };
    }
    const first = chooseStart(plan);
    if (first !== undefined) {
      if (pod.services.volumes.needsSetUp(pod.pod)) return { to: "mounting" };
      if (plan.sandbox === undefined) {
        await pod.acquireStartSlot();
        await createSandbox(pod, plan);
        return { to: "running" };
      }
      applyPendingReason(pod, first.spec.name);
      // No container starts before the network policies of the pod are in effect.
      await policies;
      pod.signal.throwIfAborted();
      return { to: "pulling", start: first, sandbox: plan.sandbox };
    }
    for (const wait of plan.waits) setCrashLoopReason(pod, wait);
    if (plan.waits.length > 0) return { to: "backoff", waits: plan.waits };
    const { settings, volumes } = pod.services;
    await pod.wait(Math.min(settings.syncMs, volumes.refreshInMs(pod.pod)));
    await refreshVolumes(pod);
    return { to: "running" };
  },
});

/** As in Kubernetes, each container has its first start before another one is restarted. */
function chooseStart({ starts }: Plan): PlannedStart | undefined {
  const [first] = starts;
  if (first?.role !== "containers") return first;
  return starts.find(({ finishedAt }) => finishedAt === undefined) ?? first;
}

function removeStaleRestarts({ memory, observation }: PodContext): void {
  for (const id of memory.toRestart) {
    if (!observation.containers.some((each) => each.id === id)) memory.toRestart.delete(id);
  }
}

/** The status shows it after how the container ended. A retry after an error keeps its reason. */
function setCrashLoopReason(pod: PodContext, wait: PlannedWait): void {
  if (wait.crashLoopDelayMs === undefined) return;
  const delay = goDuration(wait.crashLoopDelayMs);
  const message = `back-off ${delay} restarting failed container=${wait.spec.name} pod=${podFullName(pod.pod)}`;
  setPendingReason(pod, wait.spec.name, { reason: "CrashLoopBackOff", message });
}

/** As Go writes a duration of whole seconds: `10s`, `1m20s`, `5m0s`. */
function goDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}

function makePlan(pod: PodContext): Plan {
  const { services, memory } = pod;
  return planPod({
    pod: pod.pod,
    observation: pod.observation,
    now: services.clock.monotonic(),
    backoff: memory.backoff,
    retryAt: memory.retryAt,
    health: (id) => services.probes.health(id),
    hasStarted: (container, id) => services.probes.hasStarted(container, id),
    toRestart: memory.toRestart,
    needsResizeRestart: (container) => memory.resources.requiredResize(container) === "restart",
  });
}

/**
 * A killed container starts again at once if its run before ended long enough ago; otherwise it waits like one that
 * exited by itself, as in Kubernetes.
 */
function scheduleRestart(pod: PodContext, { container, role }: PlannedKill, spec: Container): void {
  const { memory, observation } = pod;
  const key = backoffKey(spec);
  const before = observation.containers.find((each) => each.name === container.name && each.state === "exited");
  if (before !== undefined) {
    if (memory.backoff.remainingDelay(key, before.finishedAt) !== undefined) {
      recordBackOff(pod, spec, role);
      return;
    }
    memory.backoff.recordRestart(key, before.finishedAt);
  }
  memory.toRestart.add(container.id);
}

async function killPlanned(pod: PodContext, kill: PlannedKill): Promise<void> {
  const spec = allContainers(pod.pod).find((each) => each.spec.name === kill.container.name)?.spec;
  if (kill.restart && spec !== undefined) scheduleRestart(pod, kill, spec);
  const health = pod.services.probes.health(kill.container.id);
  const probe = health === "liveness" ? spec?.livenessProbe : health === "startup" ? spec?.startupProbe : undefined;
  await killContainer(pod, {
    container: kill.container,
    spec,
    role: kill.role,
    message: kill.message,
    graceSeconds: probe?.terminationGracePeriodSeconds ?? graceSeconds(pod.pod),
  });
}

/** A volume that cannot be refreshed keeps its content. */
async function refreshVolumes(pod: PodContext): Promise<void> {
  try {
    await pod.services.volumes.refresh(pod.pod, pod.observation.sandboxes[0]?.ips ?? [], pod.signal);
  } catch (error) {
    pod.signal.throwIfAborted();
    pod.log.v(2)?.info("Failed to refresh volumes", { error: String(error) });
  }
}
