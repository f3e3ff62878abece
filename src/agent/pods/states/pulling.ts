import { ImageError } from "../../images/image-manager.ts";
import type { ObservedSandbox } from "../../runtime/observation.ts";
import { generateStatus } from "../status/generate-status.ts";
import { pullImageVolumes } from "../containers/image-volumes.ts";
import type { PlannedStart } from "../worker/plan.ts";
import type { PodState } from "../pod-context.ts";
import { setPendingReason } from "../status/waiting-reasons.ts";

/** Makes one container's image present. Next: starting; running when it failed, which tries again later. */
export function pulling(start: PlannedStart, sandbox: ObservedSandbox): PodState {
  return {
    name: "pulling",
    async next(pod) {
      const { services, memory } = pod;
      const { spec, role } = start;
      try {
        await services.images.checkSecrets(pod.pod);
        const image = await services.images.ensureImage(pod.pod, spec, role, pod.signal);
        await pullImageVolumes(pod, start);
        return { to: "starting", start, sandbox, image };
      } catch (error) {
        pod.signal.throwIfAborted();
        if (!(error instanceof ImageError)) throw error;
        const { reason, message } = error;
        setPendingReason(pod, spec.name, { reason, message });
        memory.retryAt.set(spec.name, services.clock.monotonic() + error.retryMs);
        services.events.recordContainerEvent(pod.pod, { role, name: spec.name }, "Warning", "Failed", `Error: ${error.reason}`);
        return { to: "running" };
      }
    },
    status: (pod) => generateStatus(pod, false),
  };
}
