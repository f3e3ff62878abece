import { deriveStatus } from "../derive-status.ts";
import { backoffKey, type PlannedWait } from "../plan.ts";
import type { PodState } from "../pod-context.ts";
import { podFullName } from "../pod-fields.ts";
import { remindMs } from "../restart-backoff.ts";

/** Some container may not be started yet. Next: running, when the first delay is over or something changed. */
export function backoff(waits: readonly PlannedWait[]): PodState {
  return {
    name: "backoff",
    async next(pod) {
      const { services } = pod;
      const full = podFullName(pod.pod);
      for (const { spec, role, crashDelayMs } of waits) {
        if (crashDelayMs === undefined || !pod.memory.backoff.mention(backoffKey(spec), services.clock.now())) continue;
        const text = `Back-off restarting failed container ${spec.name} in pod ${full}`;
        services.events.container(pod.pod, { role, name: spec.name }, "Warning", "BackOff", text);
      }
      const until = Math.min(...waits.map((each) => each.until));
      await pod.wait(Math.min(Math.max(0, until - services.clock.now()), remindMs));
      return { to: "running" };
    },
    status: (pod) => deriveStatus(pod, false),
  };
}
