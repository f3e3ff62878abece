/** Reasons why containers wait: when the status shows them, and the BackOff event. */

import type { Container } from "../../../api/core/container/schema.ts";
import type { PodContext } from "../pod-context.ts";
import { type ContainerRole, podFullName } from "../pod-fields.ts";
import { backoffKey } from "../worker/plan.ts";
import { currentRunId, type WaitingReason } from "./container-status.ts";

/** Time to the next sync if nothing else causes one. */
const NEXT_SYNC_MS = 10_000;

/**
 * The status shows the reason until a run of the container starts that is newer than `after`: from now on, or, if that
 * run is not observed yet, from its observation on.
 */
export function setWaitingReason(
  { memory, observation }: PodContext,
  name: string,
  reason: WaitingReason,
  after = currentRunId(observation, name),
): void {
  memory.pendingReasons.delete(name);
  memory.waitingReasons.set(name, { ...reason, after });
}

/**
 * The status shows the reason from the next sync on, so that clients see the state before, the end of the container or
 * its earlier reason. If the status has no reason for the container yet, it shows this one at once.
 */
export function setPendingReason(pod: PodContext, name: string, reason: WaitingReason): void {
  const { memory, observation, services } = pod;
  const after = currentRunId(observation, name);
  const shown = memory.waitingReasons.get(name);
  if (after === "" && shown?.after !== after) {
    setWaitingReason(pod, name, reason);
    return;
  }
  const last = memory.pendingReasons.get(name)?.reason ?? shown;
  if (last?.message === reason.message && last.after === after) return;
  memory.pendingReasons.set(name, { reason: { ...reason, after }, from: services.clock.monotonic() + NEXT_SYNC_MS });
}

/** Called by a sync of the container: the status shows the pending reason. */
export function applyPendingReason({ memory }: Pick<PodContext, "memory">, name: string): void {
  const pending = memory.pendingReasons.get(name);
  if (pending === undefined) return;
  memory.pendingReasons.delete(name);
  memory.waitingReasons.set(name, pending.reason);
}

/**
 * Records a BackOff event at once, and then, as Kubernetes does with each sync of the pod, at intervals and when
 * another container has started or ended.
 */
export function recordBackOff(pod: PodContext, spec: Container, role: ContainerRole): void {
  const { memory, services, observation } = pod;
  const others = observation.containers.filter(({ name, state }) => name !== spec.name && state !== "created");
  const state = [currentRunId(observation, spec.name), ...others.map(({ id, state }) => `${id} ${state}`)].join();
  if (!memory.backoff.shouldReport(backoffKey(spec), state)) return;
  const text = `Back-off restarting failed container ${spec.name} in pod ${podFullName(pod.pod)}`;
  services.events.recordContainerEvent(pod.pod, { role, name: spec.name }, "Warning", "BackOff", text);
}
