import { createHash } from "node:crypto";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { PodEventRecorder } from "../pods/pod-events.ts";
import { podName, podUid } from "../pods/pod-fields.ts";
import type { Termination } from "../pods/worker/pod-termination.ts";
import { type EvictionRecord, type EvictionRecords, toTermination } from "./eviction-records.ts";

export interface EvictionParts {
  readonly records: Pick<EvictionRecords, "add">;
  readonly events: PodEventRecorder;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface TerminablePod {
  readonly pod: Pod;
  terminate(termination: Termination): void;
}

/** The grace period of a pod that is evicted at once, in seconds. */
export const HARD_GRACE_SECONDS = 1;
/** A full or slow disk must not delay an eviction for longer. */
const RECORD_TIMEOUT_MS = 100;
/** The digits after the pod's name in the name of the event `Evicted`. */
const EVENT_DIGITS = 16;

/** Records the eviction, so that an agent continues it after a restart, reports it, and begins to end the pod. */
export async function beginEviction(
  each: TerminablePod,
  eviction: Omit<EvictionRecord, "uid">,
  { records, events, clock, signal }: EvictionParts,
): Promise<void> {
  const ended = new AbortController();
  const timeout = clock.sleep(RECORD_TIMEOUT_MS, AbortSignal.any([signal, ended.signal])).catch(() => undefined);
  await Promise.race([records.add({ ...eviction, uid: podUid(each.pod) }), timeout]).finally(() => ended.abort());
  recordEvicted(each.pod, eviction, events);
  each.terminate(toTermination(eviction));
}

/** An agent that continues the eviction after a restart records the same event. */
export function recordEvicted(
  pod: Pod,
  { message, annotations = {} }: Omit<EvictionRecord, "uid">,
  events: PodEventRecorder,
): void {
  const digest = createHash("sha256").update(podUid(pod)).digest("hex");
  const name = `${podName(pod)}.${digest.slice(0, EVENT_DIGITS)}`;
  events.recordPodEvent(pod, "Warning", "Evicted", message, { annotations, name });
}
