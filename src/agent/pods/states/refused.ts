import { generateStatus } from "../status/generate-status.ts";
import type { PodState } from "../pod-context.ts";

const RECHECK_MS = 300_000;

/**
 * The pod asks for something this agent cannot give. It stays Pending and says so; nothing of it runs. Next: admitting.
 */
export function refused(message: string): PodState {
  return {
    name: "refused",
    async next(pod) {
      pod.services.events.recordPodEvent(pod.pod, "Warning", "Unsupported", `Pod cannot be started: ${message}`);
      await pod.wait(RECHECK_MS);
      pod.memory.waitingReasons.clear();
      return { to: "admitting" };
    },
    status: (pod) => generateStatus(pod, false),
  };
}
