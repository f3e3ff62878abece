import type { PodContext } from "../pod-context.ts";
import type { WaitingReason } from "../status/container-status.ts";

/**
 * Why the runtime cannot run the pod with its `supplementalGroupsPolicy`; undefined when it can. Without the feature
 * gate no pod may have a strict policy: ignoring it would give the pod groups that it excludes. Requests the runtime's
 * features each time, because it may have been replaced.
 */
export async function checkSupplementalGroupsPolicy(pod: PodContext): Promise<WaitingReason | undefined> {
  if (pod.pod.spec?.securityContext?.supplementalGroupsPolicy !== "Strict") return undefined;
  if (pod.services.settings.supplementalGroupsPolicy !== false) {
    const { features } = await pod.services.runtime.status({}, pod.signal);
    if (features?.supplementalGroupsPolicy === true) return undefined;
  }
  return {
    reason: "SupplementalGroupsPolicyNotSupported",
    message: "SupplementalGroupsPolicy=Strict is not supported in this node",
  };
}
