/** A pod's `activeDeadlineSeconds`. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Clock, Timer } from "../../../std/time/clock.ts";
import type { PodContext } from "../pod-context.ts";
import type { WaitingReason } from "../status/container-status.ts";

export const deadlineExceeded: WaitingReason = {
  reason: "DeadlineExceeded",
  message: "Pod was active on the node longer than the specified deadline",
};

/** Called each time that a sync of the pod computes its status: as in Kubernetes, each one records an event. */
export function recordExceededDeadline({ pod, termination, services }: PodContext): void {
  if (termination?.failure !== deadlineExceeded) return;
  services.events.recordPodEvent(pod, "Normal", deadlineExceeded.reason, deadlineExceeded.message);
}

/** Undefined when the pod has no deadline. The caller must cancel the timer. */
export function startDeadlineTimer(
  pod: Pod,
  startTime: number,
  clock: Clock,
  onExceeded: () => void,
): Timer | undefined {
  const seconds = pod.spec?.activeDeadlineSeconds;
  if (seconds === undefined) return undefined;
  const left = startTime + seconds * 1000 - clock.now();
  return clock.timer(Math.min(Math.max(0, left), seconds * 1000), onExceeded);
}
