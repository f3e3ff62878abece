import { removeTree } from "../../../std/fs/remove-tree.ts";
import { podLogDir } from "../directories.ts";
import type { PodContext } from "../pod-context.ts";
import { isDeleted, podUid } from "../pod-fields.ts";
import { generateStatus } from "../status/generate-status.ts";
import { makeRejectedStatus } from "../status/pod-status.ts";
import { podState } from "./pod-state.ts";

const RETRY_MS = 5_000;
const IDLE_MS = 60_000;

/**
 * No container of the pod runs. Tears down the volumes; keeps the runtime's records and the logs readable for as long
 * as the object exists. Ends when the pod has left the sources.
 */
export const terminated = podState({
  name: "terminated",
  successors: ["terminated", "gone"],
  async next(pod) {
    const uid = podUid(pod.pod);
    try {
      await pod.services.volumes.tearDown(uid);
    } catch (error) {
      pod.log.error("Failed to tear down volumes", error);
      await pod.pause(RETRY_MS);
      return { to: "terminated" };
    }
    pod.memory.released.resolve();
    pod.services.images.forget(uid);
    if (isDeleted(pod.pod)) pod.services.onFinished(pod.pod);
    if (!pod.isRemoved) {
      await pod.wait(IDLE_MS);
      return { to: "terminated" };
    }
    await removeRecords(pod);
    return { to: "gone" };
  },
  status(pod) {
    const { rejection, startTime } = pod.memory;
    if (rejection === undefined) return generateStatus(pod, true);
    const rejected = makeRejectedStatus(pod.pod, startTime, rejection);
    // As in Kubernetes, a finalizer shows the status that the end of the containers would leave.
    if (!isDeleted(pod.pod)) return rejected;
    return generateStatus(pod, true, { reason: rejection.reason, message: rejected.message ?? "" });
  },
});

async function removeRecords(pod: PodContext): Promise<void> {
  const { services, signal } = pod;
  await pod.refresh();
  for (const container of pod.observation.containers) {
    await services.runtime.removeContainer({ containerId: container.id }, signal);
  }
  await services.cgroups.remove(podUid(pod.pod));
  await services.userNamespaces?.release(podUid(pod.pod));
  await removeTree(podLogDir(services.settings.directories, pod.pod));
  // The sandbox comes last: as long as the runtime lists it, an agent that restarts in between removes the rest.
  for (const sandbox of pod.observation.sandboxes) {
    await services.runtime.removePodSandbox({ podSandboxId: sandbox.id }, signal);
  }
  services.expectChange();
}
