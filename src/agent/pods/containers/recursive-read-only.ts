import type { VolumeMount } from "../../../api/core/container/schema.ts";
import type { PodContext } from "../pod-context.ts";

/** Whether mounts below the mount are read-only too. Rejects with Kubernetes' text when the runtime cannot do that. */
export async function resolveRecursiveReadOnly(pod: PodContext, mount: VolumeMount): Promise<boolean> {
  const mode = mount.recursiveReadOnly ?? "Disabled";
  if (mode === "Disabled") return false;
  const makeError = (why: string): Error =>
    new Error(
      "failed to resolve recursive read-only mode: " +
        `volume "${mount.name}" requested recursive read-only mode, but it is ${why}`,
    );
  if (mount.readOnly !== true) throw makeError("not read-only");
  const propagation = mount.mountPropagation ?? "None";
  if (propagation !== "None") throw makeError(`not compatible with propagation "${propagation}"`);
  const { runtimeHandlers = [] } = await pod.services.runtime.status({}, pod.signal);
  const handler = await pod.services.getRuntimeHandler(pod.pod);
  const isSupported = runtimeHandlers.some(
    ({ name = "", features }) => name === handler && features?.recursiveReadOnlyMounts === true,
  );
  if (!isSupported && mode === "Enabled") throw makeError("not supported by the runtime");
  return isSupported;
}
