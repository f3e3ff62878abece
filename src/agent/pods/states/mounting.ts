import { MountError } from "../../volumes/volume-manager.ts";
import { deriveStatus } from "../derive-status.ts";
import type { PodState } from "../pod-context.ts";

const RETRY_MS = 2_000;

/** Sets the pod's volumes up; tries again while a ConfigMap or a path is missing. Next: running. */
export const mounting: PodState = {
  name: "mounting",
  async next(pod) {
    try {
      await pod.services.volumes.setUp(pod.pod, pod.observation.sandboxes[0]?.ips ?? []);
    } catch (error) {
      pod.signal.throwIfAborted();
      if (!(error instanceof MountError)) throw error;
      pod.services.events.pod(pod.pod, "Warning", "FailedMount", error.message);
      await pod.pause(RETRY_MS);
      return { to: "mounting" };
    }
    pod.memory.mounted = true;
    return { to: "running" };
  },
  status: (pod) => deriveStatus(pod, false),
};
