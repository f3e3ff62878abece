/** The work queue of a controller. */

import { sharedSlice } from "../std/async/time-slice.ts";
import { WorkQueue } from "../std/async/work-queue.ts";
import type { BackoffOptions } from "../std/time/backoff.ts";
import { isUnanswered } from "./api-errors.ts";
import type { ControllerDeps } from "./controller.ts";

export interface ControllerQueueOptions {
  /** In metrics; where Kubernetes has a queue for the same work, its name. */
  readonly name: string;
  /** How many keys are synced at the same time, unless the options of the controllers set it. */
  readonly workers: number;
  /** Delays of a key whose sync failed; by default from 0.5 s to a minute. */
  readonly backoff?: BackoffOptions;
  /** Brings the object of the key to its desired state. A rejection is logged by `onError` and retried. */
  readonly sync: (key: string, signal: AbortSignal) => Promise<void>;
  readonly onError: (key: string, error: unknown) => void;
}

/** The default rate limiter of Kubernetes' controllers. */
export const RATE_LIMITER: BackoffOptions = { initialMs: 5, maxMs: 1_000_000, jitter: 0 };

/**
 * The maximum delay after an error that is not the server's answer to the request. The back-off of an outage would go
 * on for as long as the outage lasted; Kubernetes' controllers end with it and start anew.
 */
const UNANSWERED_RETRY_MS = 30_000;

const BACKOFF: BackoffOptions = { initialMs: 500, maxMs: 60_000, jitter: 0.1 };

/** A queue holds each key once, so it is bounded by the number of objects. Disposal waits for syncs in progress. */
export function createControllerQueue(
  {
    clock,
    random,
    queueMetrics,
    workers: configured,
  }: Pick<ControllerDeps, "clock" | "random" | "queueMetrics" | "workers">,
  { name, workers, backoff = BACKOFF, sync, onError }: ControllerQueueOptions,
): WorkQueue {
  const queue: WorkQueue = new WorkQueue({
    clock,
    random,
    metrics: queueMetrics?.(name),
    concurrency: configured ?? workers,
    backoff,
    work: async (key, signal) => {
      const turn = sharedSlice.yield(clock);
      if (turn !== undefined) await turn;
      signal.throwIfAborted();
      await sync(key, signal);
    },
    onError: (key, error) => {
      // The queue keeps the earlier one of this time and that of the back-off.
      if (isUnanswered(error)) queue.addAfter(key, UNANSWERED_RETRY_MS);
      onError(key, error);
    },
  });
  return queue;
}
