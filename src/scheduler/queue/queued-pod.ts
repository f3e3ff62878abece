import type { PodInfo } from "../cache/pod-info.ts";

/** A pod that waits to be scheduled. */
export interface QueuedPod {
  info: PodInfo;
  /** When it was added to the queue or found unschedulable, in milliseconds of the monotonic clock. */
  queuedAt: number;
  /** Orders pods that were queued at the same time. */
  sequence: number;
  attempts: number;
  /** When it was first added to the active queue, in milliseconds of the monotonic clock. */
  firstActiveAt: number | undefined;
  /** The plugins that rejected it in the last attempt. Empty after an error. */
  rejectedBy: ReadonlySet<string>;
  /** Those of them that the pod waits for. */
  pendingOn: ReadonlySet<string>;
  /** The plugin that keeps it from being scheduled at all. */
  gatedBy: string | undefined;
}

/** A higher priority first, then the longest wait. */
export function isScheduledBefore(a: QueuedPod, b: QueuedPod): boolean {
  if (a.info.priority !== b.info.priority) return a.info.priority > b.info.priority;
  return a.queuedAt === b.queuedAt ? a.sequence < b.sequence : a.queuedAt < b.queuedAt;
}
