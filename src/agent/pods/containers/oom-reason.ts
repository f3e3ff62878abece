/**
 * Waits for the final reason of a container's exit: runtimes receive the kernel's OOM event separately from the exit of
 * the process, and correct the reason a moment later.
 */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { type ObservedContainer, toObservedContainer } from "../../runtime/observation.ts";
import { type Runtime, RuntimeError } from "../../runtime/runtime.ts";
import { allContainers, isDeleted } from "../pod-fields.ts";

/** Upper bound of that delay, also on a busy node. */
const REASON_DELAY_MS = 250;
const OOM_KILLED = "OOMKilled";

/** Whether the reason may still change. False for a deleted pod, whose reason has no effect. */
export function mayBeOomKilled(pod: Pod, { state, reason, name }: ObservedContainer): boolean {
  if (state !== "exited" || reason === OOM_KILLED || isDeleted(pod)) return false;
  const spec = allContainers(pod).find((each) => each.spec.name === name)?.spec;
  return spec?.resources?.limits?.memory !== undefined;
}

/** The container's status once its reason is final. */
export async function awaitFinalReason(
  container: ObservedContainer,
  runtime: Pick<Runtime, "containerStatus">,
  clock: Clock,
  signal: AbortSignal,
): Promise<ObservedContainer> {
  const ageMs = clock.now() - container.finishedAt;
  // It exited long ago, or the clock was set since.
  if (ageMs < 0 || ageMs >= REASON_DELAY_MS) return container;
  await clock.sleep(REASON_DELAY_MS - ageMs, signal);
  const response = await runtime.containerStatus({ containerId: container.id }, signal).catch((error: unknown) => {
    if (error instanceof RuntimeError) return undefined;
    throw error;
  });
  return response?.status === undefined ? container : toObservedContainer(response.status, container.sandboxId);
}
