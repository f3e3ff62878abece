import { applyPendingReason, recordBackOff } from "../status/waiting-reasons.ts";
import { reportIntervalMs } from "../worker/restart-backoff.ts";
import { podState } from "./pod-state.ts";

/** Waits until the first restart delay is over or something changed. */
export const backoff = podState({
  name: "backoff",
  successors: ["running"],
  async next(pod, { waits }) {
    const { services, memory } = pod;
    for (const { spec, role, crashLoopDelayMs } of waits) {
      if (crashLoopDelayMs !== undefined) recordBackOff(pod, spec, role);
    }
    const changes = waits.map(({ spec, until }) =>
      Math.min(until, memory.pendingReasons.get(spec.name)?.from ?? until),
    );
    const until = Math.min(...changes);
    await pod.wait(Math.min(Math.max(0, until - services.clock.monotonic()), reportIntervalMs));
    for (const { spec } of waits) {
      if (services.clock.monotonic() >= (memory.pendingReasons.get(spec.name)?.from ?? Number.POSITIVE_INFINITY)) {
        applyPendingReason(pod, spec.name);
      }
    }
    return { to: "running" };
  },
});
