/**
 * Why a container ended is known a moment later than that it did: runtimes hear of memory that ran out apart from the
 * end of a process, and correct the reason then.
 */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { type ObservedContainer, toObservedContainer } from "../../runtime/observation.ts";
import { type Runtime, RuntimeError } from "../../runtime/runtime.ts";
import { allContainers, isDeleted } from "../pod-fields.ts";

/** On a busy machine, too. */
const REASON_DELAY_MS = 250;
const OOM_KILLED = "OOMKilled";

/** Whether the reason may yet become another: nobody asks why a pod ends that is deleted. */
export function mayBeOomKilled(pod: Pod, { state, reason, name }: ObservedContainer): boolean {
  if (state !== "exited" || reason === OOM_KILLED || isDeleted(pod)) return false;
  const spec = allContainers(pod).find((each) => each.spec.name === name)?.spec;
  return spec?.resources?.limits?.memory !== undefined;
}

/** The container as the runtime has it once the reason is sure. */
export async function awaitFinalReason(
  container: ObservedContainer,
  runtime: Pick<Runtime, "containerStatus">,
  clock: Clock,
  signal: AbortSignal,
): Promise<ObservedContainer> {
  const ageMs = clock.now() - container.finishedAt;
  // One that ended long ago, or whose end cannot be told from clocks that were set.
  if (ageMs < 0 || ageMs >= REASON_DELAY_MS) return container;
  await clock.sleep(REASON_DELAY_MS - ageMs, signal);
  const answer = await runtime.containerStatus({ containerId: container.id }, signal).catch((error: unknown) => {
    if (error instanceof RuntimeError) return undefined;
    throw error;
  });
  return answer?.status === undefined ? container : toObservedContainer(answer.status, container.sandboxId);
}
