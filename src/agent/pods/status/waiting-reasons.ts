/** What is remembered of why containers wait, from when on it shows, and what is said of it. */

import type { Container } from "../../../api/core/container/schema.ts";
import type { PodContext } from "../pod-context.ts";
import { type ContainerRole, podFullName } from "../pod-fields.ts";
import { backoffKey } from "../worker/plan.ts";
import { currentRunId, type WaitingReason } from "./container-status.ts";

/** What one sync finds out is what the next one shows; this long after it when nothing else happens. */
const NEXT_SYNC_MS = 10_000;

/** Shows the reason from now on, until a newer run of the container starts. */
export function setWaitingReason({ memory, observation }: PodContext, name: string, reason: WaitingReason): void {
  memory.pendingReasons.delete(name);
  memory.waitingReasons.set(name, { ...reason, after: currentRunId(observation, name) });
}

/**
 * Shows the reason from the next sync on, so that what came before, how the container ended or why it waited, is seen
 * first. When nothing is told of the container yet, it shows at once.
 */
export function setPendingReason(pod: PodContext, name: string, reason: WaitingReason): void {
  const { memory, observation, services } = pod;
  const after = currentRunId(observation, name);
  const shown = memory.waitingReasons.get(name);
  if (after === "" && shown?.after !== after) {
    setWaitingReason(pod, name, reason);
    return;
  }
  const known = memory.pendingReasons.get(name)?.reason ?? shown;
  if (known?.message === reason.message && known.after === after) return;
  memory.pendingReasons.set(name, { reason: { ...reason, after }, from: services.clock.monotonic() + NEXT_SYNC_MS });
}

/** A sync that has to do with the container: what is noted of it shows. */
export function applyPendingReason({ memory }: Pick<PodContext, "memory">, name: string): void {
  const noted = memory.pendingReasons.get(name);
  if (noted === undefined) return;
  memory.pendingReasons.delete(name);
  memory.waitingReasons.set(name, noted.reason);
}

/** That the container waits for its restart: at once, and then now and again. */
export function recordBackOff(pod: PodContext, spec: Container, role: ContainerRole): void {
  const { memory, services, observation } = pod;
  const run = currentRunId(observation, spec.name);
  if (!memory.backoff.shouldReport(backoffKey(spec), run)) return;
  const text = `Back-off restarting failed container ${spec.name} in pod ${podFullName(pod.pod)}`;
  services.events.recordContainerEvent(pod.pod, { role, name: spec.name }, "Warning", "BackOff", text);
}
