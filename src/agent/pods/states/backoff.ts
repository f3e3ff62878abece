import { generateStatus } from "../status/generate-status.ts";
import type { PlannedWait } from "../worker/plan.ts";
import type { PodState } from "../pod-context.ts";
import { reportIntervalMs } from "../worker/restart-backoff.ts";
import { recordBackOff, applyPendingReason } from "../status/waiting-reasons.ts";

/** Some container may not be started yet. Next: running, when the first delay is over or something changed. */
export function backoff(waits: readonly PlannedWait[]): PodState {
  return {
    name: "backoff",
    async next(pod) {
      const { services, memory } = pod;
      for (const { spec, role, crashLoopDelayMs: crashDelayMs } of waits) {
        if (crashDelayMs !== undefined) recordBackOff(pod, spec, role);
      }
      const changes = waits.map(({ spec, until }) => Math.min(until, memory.pendingReasons.get(spec.name)?.from ?? until));
      const until = Math.min(...changes);
      await pod.wait(Math.min(Math.max(0, until - services.clock.monotonic()), reportIntervalMs));
      for (const { spec } of waits) {
        if (services.clock.monotonic() >= (memory.pendingReasons.get(spec.name)?.from ?? Number.POSITIVE_INFINITY)) {
          applyPendingReason(pod, spec.name);
        }
      }
      return { to: "running" };
    },
    status: (pod) => generateStatus(pod, false),
  };
}
