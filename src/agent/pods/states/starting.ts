import type { PresentImage } from "../../images/image-manager.ts";
import type { ObservedSandbox } from "../../runtime/observation.ts";
import { StartError, startContainer } from "../containers/start-container.ts";
import { generateStatus } from "../status/generate-status.ts";
import { backoffKey, type PlannedStart } from "../worker/plan.ts";
import type { PodState } from "../pod-context.ts";
import { setWaitingReason } from "../status/waiting-reasons.ts";

/** A container that could not be started is tried again after this; Kubernetes' sync period for failing pods. */
const RETRY_MS = 10_000;

/** Creates and starts one container. Next: running. */
export function starting(start: PlannedStart, sandbox: ObservedSandbox, image: PresentImage): PodState {
  return {
    name: "starting",
    async next(pod) {
      const { services, memory } = pod;
      const { spec, role } = start;
      if (start.finishedAt !== undefined) memory.backoff.recordRestart(backoffKey(spec), start.finishedAt);
      try {
        await startContainer(pod, start, sandbox, image);
        memory.retryAt.delete(spec.name);
      } catch (error) {
        pod.signal.throwIfAborted();
        if (!(error instanceof StartError)) throw error;
        // What became of the container comes before the reason why it is waited for.
        // A runtime that is away is the reason.
        await pod.refresh().catch(() => pod.signal.throwIfAborted());
        setWaitingReason(pod, spec.name, { reason: error.reason, message: error.message });
        memory.retryAt.set(spec.name, services.clock.monotonic() + RETRY_MS);
        if (error.reason !== "PostStartHookError") {
          services.events.recordContainerEvent(pod.pod, { role, name: spec.name }, "Warning", "Failed", `Error: ${error.message}`);
        }
      }
      return { to: "running" };
    },
    status: (pod) => generateStatus(pod, false),
  };
}
