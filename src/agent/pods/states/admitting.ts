import type { WaitingReason } from "../status/container-status.ts";
import { generateStatus } from "../status/generate-status.ts";
import type { PodContext, PodState } from "../pod-context.ts";
import { allContainers } from "../pod-fields.ts";
import { checkSupplementalGroupsPolicy } from "../admission/runtime-features.ts";
import { findUnsupportedFeature } from "../admission/unsupported-features.ts";

/**
 * Decides whether this node runs the pod. Next: mounting; refused; or terminating, when the pod cannot ever run here.
 */
export const admitting: PodState = {
  name: "admitting",
  async next(pod) {
    // What already runs was admitted before the agent was restarted.
    const adopted = pod.observation.containers.length > 0;
    if (adopted) pod.services.admission.adopt(pod.pod);
    const rejection = adopted ? undefined : await rejectionOf(pod);
    if (rejection !== undefined) {
      pod.memory.rejection = rejection;
      pod.services.events.recordPodEvent(pod.pod, "Warning", rejection.reason, rejection.message);
      return { to: "terminating" };
    }
    const feature = findUnsupportedFeature(pod.pod, pod.services);
    if (feature === undefined) return { to: "mounting" };
    const message = `the pod needs ${feature}, which this agent does not support`;
    for (const { spec } of allContainers(pod.pod))
      pod.memory.waitingReasons.set(spec.name, { reason: "Unsupported", message });
    return { to: "refused", message };
  },
  status: (pod) => generateStatus(pod, false),
};

async function rejectionOf(pod: PodContext): Promise<WaitingReason | undefined> {
  const rejection = (await pod.services.admission.admit(pod.pod)) ?? (await checkSupplementalGroupsPolicy(pod));
  // Making room for it takes time, in which it may have been deleted.
  pod.signal.throwIfAborted();
  return rejection;
}
