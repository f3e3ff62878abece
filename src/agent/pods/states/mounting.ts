import { type FailedVolume, MountError } from "../../volumes/volume-manager.ts";
import type { PodContext } from "../pod-context.ts";
import { podState } from "./pod-state.ts";

/** Kubernetes' delays between two attempts. */
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 122_000;
/** Between two events about claims: Kubernetes records one with each sync of the pod, every 10 to 15 s. */
const CLAIMS_MS = 12_500;

/** Sets up the pod's volumes. Tries again while a ConfigMap or a path is missing, at once when something changed. */
export const mounting = podState({
  name: "mounting",
  successors: ["running"],
  async next(pod) {
    const { clock } = pod.services;
    let delayMs = RETRY_MIN_MS;
    let reportAt = clock.monotonic();
    let claimsAt = reportAt;
    for (;;) {
      const failure = await setUpVolumes(pod);
      if (failure === undefined) break;
      const now = clock.monotonic();
      if (now >= reportAt) {
        for (const { event, message } of failure.volumes) if (event !== undefined) recordWarning(pod, event, message);
        reportAt = now + delayMs;
        delayMs = Math.min(delayMs * 2, RETRY_MAX_MS);
      }
      const hasUnresolved = failure.volumes.some(({ isUnresolved }) => isUnresolved);
      if (hasUnresolved && now >= claimsAt) {
        recordWarning(pod, "FailedMount", describeClaims(failure));
        claimsAt = now + CLAIMS_MS;
      }
      await pod.wait(Math.max(0, Math.min(reportAt, hasUnresolved ? claimsAt : reportAt) - now));
    }
    return { to: "running" };
  },
});

function describeClaims({ volumes }: MountError): string {
  const unresolved = volumes.filter(({ isUnresolved }) => isUnresolved);
  const lists = [
    `unmounted volumes=${listNames(volumes)}`,
    `unattached volumes=${listNames(volumes.filter(({ isUnattached }) => isUnattached))}`,
    `failed to process volumes=${listNames(unresolved)}`,
  ];
  const problems = [...new Set(unresolved.map(({ message }) => message))];
  return `Unable to attach or mount volumes: ${lists.join(", ")}: ${problems.join("; ")}`;
}

/** `[a b]`, as Go writes a list. */
function listNames(volumes: readonly FailedVolume[]): string {
  return `[${volumes
    .map(({ name }) => name)
    .sort()
    .join(" ")}]`;
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
