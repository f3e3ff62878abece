import { checkSupplementalGroupsPolicy } from "../admission/supplemental-groups-policy.ts";
import { findUnsupportedFeature } from "../admission/unsupported-features.ts";
import type { PodContext } from "../pod-context.ts";
import { allContainers } from "../pod-fields.ts";
import type { WaitingReason } from "../status/container-status.ts";
import { podState } from "./pod-state.ts";

/** Decides whether this node runs the pod. Rejects a pod that can never run here. */
export const admitting = podState({
  name: "admitting",
  successors: ["mounting", "refused", "terminating"],
  async next(pod) {
    // A pod that has containers was admitted before the agent restarted.
    const adopted = pod.observation.containers.length > 0;
    const rejection = await (adopted ? pod.services.admission.adopt(pod.pod) : findRejection(pod));
    if (rejection !== undefined) {
      pod.memory.rejection = rejection;
      pod.services.metrics?.onRejected(rejection.reason);
      pod.services.events.recordPodEvent(pod.pod, "Warning", rejection.reason, rejection.message);
      return { to: "terminating" };
    }
    const feature = findUnsupportedFeature(pod.pod, pod.services);
    if (feature === undefined) return { to: "mounting" };
    const message = `the pod needs ${feature}, which this agent does not support`;
    for (const { spec } of allContainers(pod.pod)) {
      pod.memory.waitingReasons.set(spec.name, { reason: "Unsupported", message });
    }
    return { to: "refused", message };
  },
});

async function findRejection(pod: PodContext): Promise<WaitingReason | undefined> {
  const rejection = await pod.services.admission.admit(pod.pod, await checkSupplementalGroupsPolicy(pod));
  // Preemption takes time, in which the pod may have been deleted.
  pod.signal.throwIfAborted();
  return rejection;
}
