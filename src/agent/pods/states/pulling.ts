import { ImageError } from "../../images/image-manager.ts";
import { pullImageVolumes } from "../containers/image-volumes.ts";
import { setPendingReason } from "../status/waiting-reasons.ts";
import { podState } from "./pod-state.ts";

/** Pulls the image of one container and its image volumes. `running` schedules the retry of a failed pull. */
export const pulling = podState({
  name: "pulling",
  successors: ["starting", "running"],
  async next(pod, { start, sandbox }) {
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
      const container = { role, name: spec.name };
      services.events.recordContainerEvent(pod.pod, container, "Warning", "Failed", `Error: ${error.reason}`);
      return { to: "running" };
    }
  },
});
