import { MountError } from "../../volumes/volume-manager.ts";
import type { PodContext } from "../pod-context.ts";
import { podState } from "./pod-state.ts";

/** Kubernetes' delays between two attempts. */
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 122_000;
/** Time without success after which an event sums up the volumes that are missing. */
const SUMMARY_TIMEOUT_MS = 123_000;

/** Sets up the pod's volumes. Tries again while a ConfigMap or a path is missing, at once when something changed. */
export const mounting = podState({
  name: "mounting",
  successors: ["running"],
  async next(pod) {
    const { clock } = pod.services;
    let delayMs = RETRY_MIN_MS;
    let reportAt = clock.monotonic();
    let summaryAt = reportAt + SUMMARY_TIMEOUT_MS;
    for (;;) {
      const failure = await setUpVolumes(pod);
      if (failure === undefined) break;
      const now = clock.monotonic();
      if (now >= reportAt) {
        for (const { event, message } of failure.volumes) if (event !== undefined) recordWarning(pod, event, message);
        reportAt = now + delayMs;
        delayMs = Math.min(delayMs * 2, RETRY_MAX_MS);
      }
      if (now >= summaryAt) {
        recordWarning(pod, "FailedMount", summarize(failure));
        summaryAt = now + SUMMARY_TIMEOUT_MS;
      }
      await pod.wait(Math.max(0, Math.min(reportAt, summaryAt) - now));
    }
    return { to: "running" };
  },
});

function summarize({ volumes }: MountError): string {
  const names = volumes.map(({ name }) => name).join(" ");
  const unattached = volumes.filter(({ isUnattached }) => isUnattached).map(({ name }) => name);
  const state = `unmounted volumes=[${names}], unattached volumes=[${unattached.join(" ")}], failed to process volumes=[]`;
  return `Unable to attach or mount volumes: ${state}: context deadline exceeded`;
}

async function setUpVolumes(pod: PodContext): Promise<MountError | undefined> {
  try {
    await pod.services.volumes.setUp(pod.pod, pod.observation.sandboxes[0]?.ips ?? [], pod.signal);
    return undefined;
  } catch (error) {
    pod.signal.throwIfAborted();
    if (error instanceof MountError) return error;
    throw error;
  }
}

function recordWarning(pod: PodContext, reason: string, message: string): void {
  pod.services.events.recordPodEvent(pod.pod, "Warning", reason, message);
}
