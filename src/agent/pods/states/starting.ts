import { StartError, startContainer } from "../containers/start-container.ts";
import { currentRunId } from "../status/container-status.ts";
import { setWaitingReason } from "../status/waiting-reasons.ts";
import { backoffKey } from "../worker/plan.ts";
import { podState } from "./pod-state.ts";

/** Delay before a container that could not be started is tried again; Kubernetes' sync period for failing pods. */
const RETRY_MS = 10_000;

/** Creates and starts one container. */
export const starting = podState({
  name: "starting",
  successors: ["running"],
  async next(pod, { start, sandbox, image }) {
    const { services, memory } = pod;
    const { spec, role } = start;
    if (start.finishedAt !== undefined) memory.backoff.recordRestart(backoffKey(spec), start.finishedAt);
    try {
      await startContainer(pod, start, sandbox, image);
      memory.retryAt.delete(spec.name);
    } catch (error) {
      pod.signal.throwIfAborted();
      if (!(error instanceof StartError)) throw error;
      const { reason, message, containerId } = error;
      // Before the observation, so that no status shows how a container ended that restarts without the reason.
      setWaitingReason(pod, spec.name, { reason, message }, containerId);
      // A runtime that cannot be reached is the reason itself.
      await pod.refresh().catch(() => pod.signal.throwIfAborted());
      if (containerId !== undefined && currentRunId(pod.observation, spec.name) === containerId) {
        // A run that failed restarts with the delay of a crashed container.
        memory.retryAt.delete(spec.name);
      } else {
        setWaitingReason(pod, spec.name, { reason, message });
        memory.retryAt.set(spec.name, services.clock.monotonic() + RETRY_MS);
      }
      if (reason !== "PostStartHookError") {
        const container = { role, name: spec.name };
        services.events.recordContainerEvent(pod.pod, container, "Warning", "Failed", `Error: ${message}`);
      }
    }
    return { to: "running" };
  },
});
