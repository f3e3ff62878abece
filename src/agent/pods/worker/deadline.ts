/** A pod's `activeDeadlineSeconds`. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Clock, Timer } from "../../../std/time/clock.ts";
import type { WaitingReason } from "../status/container-status.ts";

export const deadlineExceeded: WaitingReason = {
  reason: "DeadlineExceeded",
  message: "Pod was active on the node longer than the specified deadline",
};

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
