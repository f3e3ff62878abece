/** What pods may have only where the runtime can do it. The runtime is asked each time: it may have been replaced. */
import type { VolumeMount } from "../../../api/core/container/schema.ts";
import type { UserNamespace } from "../../runtime/cri/shared.ts";
import type { WaitingReason } from "../status/container-status.ts";
import type { PodContext } from "../pod-context.ts";
import { podUid } from "../pod-fields.ts";

/** Why the pod cannot run on this node's runtime; undefined when it can. */
export async function checkSupplementalGroupsPolicy(pod: PodContext): Promise<WaitingReason | undefined> {
  if (pod.pod.spec?.securityContext?.supplementalGroupsPolicy !== "Strict") return undefined;
  const { features } = await pod.services.runtime.status({}, pod.signal);
  if (features?.supplementalGroupsPolicy === true) return undefined;
  return {
    reason: "SupplementalGroupsPolicyNotSupported",
    message: "SupplementalGroupsPolicy=Strict is not supported in this node",
  };
}

/** The ids of a pod with a user namespace of its own; undefined for others. Rejects with Kubernetes' text. */
export async function resolveUserNamespace(pod: PodContext): Promise<UserNamespace | undefined> {
  const { userNamespaces } = pod.services;
  if (pod.pod.spec?.hostUsers !== false || userNamespaces === undefined) return undefined;
  const { runtimeHandlers = [] } = await pod.services.runtime.status({}, pod.signal);
  const handler = await pod.services.runtimeHandler(pod.pod);
  const found = runtimeHandlers.find(({ name = "" }) => name === handler);
  if (found?.features?.userNamespaces === true) return await userNamespaces.allocate(podUid(pod.pod));
  const who = handler === "" ? "runtime" : `RuntimeClass handler ${JSON.stringify(handler)}`;
  const why = found === undefined ? `: the handler ${JSON.stringify(handler)} is not known` : "";
  throw new Error(`can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces${why}`);
}

/** Whether what is mounted within the mount is to be read-only too. Rejects with Kubernetes' text when it cannot be. */
export async function resolveRecursiveReadOnly(pod: PodContext, mount: VolumeMount): Promise<boolean> {
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
