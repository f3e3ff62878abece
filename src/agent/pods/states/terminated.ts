import { rm } from "node:fs/promises";
import { generateStatus } from "../status/generate-status.ts";
import { podLogDir } from "../directories.ts";
import type { PodContext, PodState } from "../pod-context.ts";
import { isDeleted, podUid } from "../pod-fields.ts";
import { makeRejectedStatus } from "../status/pod-status.ts";

const RETRY_MS = 5_000;
const IDLE_MS = 60_000;

/**
 * Nothing of the pod runs. Volumes are released; records and logs stay for as long as the object does, so that people
 * can read them. Ends when the pod has left the sources.
 */
export const terminated: PodState = {
  name: "terminated",
  async next(pod) {
    const uid = podUid(pod.pod);
    try {
      await pod.services.volumes.tearDown(uid);
    } catch (error) {
      pod.log.error("Cannot release volumes", error);
      await pod.pause(RETRY_MS);
      return { to: "terminated" };
    }
    pod.services.images.forget(uid);
    if (isDeleted(pod.pod)) pod.services.onFinished(pod.pod);
    if (!pod.removed) {
      await pod.wait(IDLE_MS);
      return { to: "terminated" };
    }
    await forget(pod);
    return null;
  },
  status(pod) {
    const { rejection, startTime } = pod.memory;
    return rejection === undefined ? generateStatus(pod, true) : makeRejectedStatus(pod.pod, startTime, rejection);
  },
};

/** Removes the last records. */
async function forget(pod: PodContext): Promise<void> {
  const { services, signal } = pod;
  await pod.refresh();
  for (const container of pod.observation.containers) {
    await services.runtime.removeContainer({ containerId: container.id }, signal);
  }
  await services.cgroups.remove(podUid(pod.pod));
  await services.userNamespaces?.release(podUid(pod.pod));
  await rm(podLogDir(services.settings.directories, pod.pod), { recursive: true, force: true });
  // Last: as long as the runtime knows a sandbox, an agent that was killed meanwhile is reminded of the rest.
  for (const sandbox of pod.observation.sandboxes) {
    await services.runtime.removePodSandbox({ podSandboxId: sandbox.id }, signal);
  }
  services.expectChange();
}
