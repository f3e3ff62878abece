import { goQuote } from "../../../schema/value/go-quote.ts";
import { annotations, type ObservedContainer } from "../../runtime/observation.ts";
import { killContainer } from "../containers/kill-container.ts";
import type { PodContext } from "../pod-context.ts";
import { allContainers, graceSeconds, isDeleted, isSidecar, type PodContainer, podUid } from "../pod-fields.ts";
import { generateStatus } from "../status/generate-status.ts";
import { hasInitialized, makeRejectedStatus } from "../status/pod-status.ts";
import { recordExceededDeadline } from "../worker/deadline.ts";
import { podState } from "./pod-state.ts";

const RETRY_MS = 2_000;
/** Kubernetes' least, also of a forced deletion: a container may handle its stop signal. */
const GRACE_SECONDS_MIN = 1;

/**
 * Stops the containers together, then the sidecars in reverse order, then the sandbox. The preStop hooks of all begin
 * at once, as in Kubernetes; sidecars wait neither for init nor for ephemeral containers.
 */
export const terminating = podState({
  name: "terminating",
  successors: ["terminating", "terminated"],
  async next(pod) {
    const { services } = pod;
    recordExceededDeadline(pod);
    services.probes.stop(podUid(pod.pod), ["startup", "liveness"]);
    pod.memory.hasInitialized ??= hasInitialized(pod.pod, pod.memory.status);
    try {
      await stopPod(pod);
    } catch (error) {
      pod.signal.throwIfAborted();
      const text = error instanceof Error ? error.message : String(error);
      services.events.recordPodEvent(pod.pod, "Warning", "FailedKillPod", `error killing pod: ${text}`);
      await pod.pause(RETRY_MS);
      return { to: "terminating" };
    }
    services.probes.stop(podUid(pod.pod));
    recordExceededDeadline(pod);
    try {
      await services.resourceManagers?.claims?.unprepare(pod.pod, pod.signal);
    } catch (error) {
      pod.signal.throwIfAborted();
      pod.log.warn("Failed to release the resource claims of a pod", { error: String(error) });
      await pod.pause(RETRY_MS);
      return { to: "terminating" };
    }
    recordExceededDeadline(pod);
    return { to: "terminated" };
  },
  status(pod) {
    const { rejection } = pod.memory;
    const isRejected = rejection !== undefined && pod.observation.containers.length === 0 && !isDeleted(pod.pod);
    return isRejected ? makeRejectedStatus(pod.pod, pod.memory.startTime, rejection) : generateStatus(pod, false);
  },
});

/** Attempts every step even if one fails, then rejects with all failures, in Kubernetes' format. */
async function stopPod(pod: PodContext): Promise<void> {
  const { services } = pod;
  const failures: string[] = [];
  const attempt = async (action: string, name: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      pod.signal.throwIfAborted();
      const text = goQuote(error instanceof Error ? error.message : String(error));
      failures.push(`failed to "${action}" for "${name}" with ${action}Error: ${text}`);
    }
  };
  const grace = Math.max(GRACE_SECONDS_MIN, chooseGraceSeconds(pod));
  // If the runtime cannot be reached, the calls below fail as well.
  await pod.refresh().catch(() => pod.signal.throwIfAborted());
  const kill = ({ container, member }: RunningContainer, turn?: Promise<unknown>): Promise<void> => {
    const options = {
      container,
      spec: member?.spec,
      role: member?.role ?? ("containers" as const),
      message: `Stopping container ${container.name}`,
      graceSeconds: grace,
      ...(turn && { turn }),
    };
    return attempt("KillContainer", container.name, () => killContainer(pod, options));
  };
  const { sidecars, others } = findRunning(pod);
  const kills = others.map((each) => ({ each, done: kill(each) }));
  const earlier = kills.filter(({ each }) => each.member?.role === "containers").map(({ done }) => done);
  for (const sidecar of sidecars) earlier.push(kill(sidecar, Promise.all(earlier)));
  await Promise.all([...kills.map(({ done }) => done), ...earlier]);
  for (const sandbox of pod.observation.sandboxes) {
    if (!sandbox.ready) continue;
    await attempt("KillPodSandbox", podUid(pod.pod), () =>
      services.runtime.stopPodSandbox({ podSandboxId: sandbox.id }, pod.signal),
    );
  }
  if (failures.length > 0) throw new Error(failures.length === 1 ? failures[0] : `[${failures.join(", ")}]`);
  services.expectChange();
  await pod.refresh();
}

interface RunningContainer {
  readonly container: ObservedContainer;
  /** Undefined for a container that the spec no longer has. */
  readonly member: PodContainer | undefined;
}

/** Sidecars are in the reverse of their order in the spec. */
function findRunning({ pod, observation }: PodContext): Record<"sidecars" | "others", readonly RunningContainer[]> {
  const members = allContainers(pod);
  const running = observation.containers
    .filter(({ state }) => state === "running" || state === "unknown")
    .map((container) => ({ container, member: members.find(({ spec }) => spec.name === container.name) }));
  const isSidecarContainer = ({ member }: RunningContainer): boolean =>
    member?.role === "initContainers" && isSidecar(member.spec);
  const index = ({ container }: RunningContainer): number =>
    members.findIndex(({ spec }) => spec.name === container.name);
  return {
    sidecars: running.filter(isSidecarContainer).sort((a, b) => index(b) - index(a)),
    others: running.filter((each) => !isSidecarContainer(each)),
  };
}

/** Of the request; else of the spec; else, for a pod that no source has, of its containers' annotations. */
function chooseGraceSeconds(pod: PodContext): number {
  if (pod.termination?.graceSeconds !== undefined) return pod.termination.graceSeconds;
  if (pod.pod.spec !== undefined) return graceSeconds(pod.pod);
  const annotated = pod.observation.containers.map((each) =>
    Number(each.annotations[annotations.terminationGracePeriod]),
  );
  return Math.max(1, ...annotated.filter(Number.isFinite));
}
