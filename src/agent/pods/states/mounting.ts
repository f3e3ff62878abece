import { MountError } from "../../volumes/volume-manager.ts";
import { generateStatus } from "../status/generate-status.ts";
import type { PodContext, PodState } from "../pod-context.ts";

/** Kubernetes' delays between two tries. */
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 122_000;
/** After this long without success a summary is given. */
const PATIENCE_MS = 123_000;

/**
 * Sets the pod's volumes up; tries again while a ConfigMap or a path is missing, at once when something changed. Next:
 * running.
 */
export const mounting: PodState = {
  name: "mounting",
  async next(pod) {
    const { clock } = pod.services;
    let delayMs = RETRY_MIN_MS;
    let sayAt = clock.monotonic();
    let summaryAt = sayAt + PATIENCE_MS;
    for (;;) {
      const failure = await setUp(pod);
      if (failure === undefined) break;
      const now = clock.monotonic();
      if (now >= sayAt) {
        for (const { event, message } of failure.volumes) if (event !== undefined) say(pod, event, message);
        sayAt = now + delayMs;
        delayMs = Math.min(delayMs * 2, RETRY_MAX_MS);
      }
      if (now >= summaryAt) {
        const names = failure.volumes.map(({ name }) => name).join(" ");
        const unattached = failure.volumes.filter(({ isUnattached }) => isUnattached).map(({ name }) => name);
        const state = `unmounted volumes=[${names}], unattached volumes=[${unattached.join(" ")}], failed to process volumes=[]`;
        say(pod, "FailedMount", `Unable to attach or mount volumes: ${state}: context deadline exceeded`);
        summaryAt = now + PATIENCE_MS;
      }
      await pod.wait(Math.max(0, Math.min(sayAt, summaryAt) - now));
    }
    pod.memory.mounted = true;
    return { to: "running" };
  },
  status: (pod) => generateStatus(pod, false),
};

async function setUp(pod: PodContext): Promise<MountError | undefined> {
  try {
    await pod.services.volumes.setUp(pod.pod, pod.observation.sandboxes[0]?.ips ?? [], pod.signal);
    return undefined;
  } catch (error) {
    pod.signal.throwIfAborted();
    if (error instanceof MountError) return error;
    throw error;
  }
}

function say(pod: PodContext, reason: string, message: string): void {
  pod.services.events.recordPodEvent(pod.pod, "Warning", reason, message);
}
