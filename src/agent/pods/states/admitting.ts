import { deriveStatus } from "../derive-status.ts";
import type { PodState } from "../pod-context.ts";
import { unsupportedFeature } from "../unsupported.ts";

/** Decides whether this node runs the pod. Next: mounting; refused; or terminating, when the pod cannot ever run here. */
export const admitting: PodState = {
  name: "admitting",
  async next(pod) {
    // What already runs was admitted before the agent was restarted.
    const adopted = pod.observation.containers.length > 0;
    const rejection = adopted ? undefined : pod.services.admit(pod.pod);
    if (rejection !== undefined) {
      pod.memory.rejection = rejection;
      pod.services.events.pod(pod.pod, "Warning", rejection.reason, rejection.message);
      return { to: "terminating" };
    }
    const feature = unsupportedFeature(pod.pod);
    return feature === undefined ? { to: "mounting" } : { to: "refused", feature };
  },
  status: (pod) => deriveStatus(pod, false),
};
