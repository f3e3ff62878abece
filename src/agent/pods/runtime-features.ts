/** What pods may have only where the runtime can do it. The runtime is asked each time: it may have been replaced. */
import type { VolumeMount } from "../../api/core/container.ts";
import type { WaitingReason } from "./container-status.ts";
import type { PodContext } from "./pod-context.ts";

/** Why the pod cannot run on this node's runtime; undefined when it can. */
export async function runtimeRejection(pod: PodContext): Promise<WaitingReason | undefined> {
  if (pod.pod.spec?.securityContext?.supplementalGroupsPolicy !== "Strict") return undefined;
  const { features } = await pod.services.runtime.status({}, pod.signal);
  if (features?.supplementalGroupsPolicy === true) return undefined;
  return {
    reason: "SupplementalGroupsPolicyNotSupported",
    message: "SupplementalGroupsPolicy=Strict is not supported in this node",
  };
}

/** Whether what is mounted within the mount is to be read-only too. Rejects with Kubernetes' text when it cannot be. */
export async function isRecursivelyReadOnly(pod: PodContext, mount: VolumeMount): Promise<boolean> {
  const mode = mount.recursiveReadOnly ?? "Disabled";
  if (mode === "Disabled") return false;
  const refuse = (why: string): Error =>
    new Error(
      "failed to resolve recursive read-only mode: " +
        `volume "${mount.name}" requested recursive read-only mode, but it is ${why}`,
    );
  if (mount.readOnly !== true) throw refuse("not read-only");
  const propagation = mount.mountPropagation ?? "None";
  if (propagation !== "None") throw refuse(`not compatible with propagation "${propagation}"`);
  const { runtimeHandlers = [] } = await pod.services.runtime.status({}, pod.signal);
  const handler = await pod.services.runtimeHandler(pod.pod);
  const isAble = runtimeHandlers.some(
    ({ name = "", features }) => name === handler && features?.recursiveReadOnlyMounts === true,
  );
  if (!isAble && mode === "Enabled") throw refuse("not supported by the runtime");
  return isAble;
}
