/** What happens to audit events: truncated, batched or not, and sent to the log or the webhook. */
import type { MaybePromise } from "../std/async/maybe-promise.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import type { AuditMetrics } from "./audit-metrics.ts";
import type { AuditEvent } from "./event.ts";
import { type BatchOptions, EventBatcher } from "./event-batcher.ts";
import { type TruncateOptions, truncate } from "./truncate.ts";

export type AuditMode = "batch" | "blocking" | "blocking-strict";

/** The destination of events: the log or the webhook. */
export interface AuditSink extends AsyncDisposable {
  readonly name: "log" | "webhook";
  /** Bytes of the event as it will be sent. */
  sizeOf(event: AuditEvent): number;
  /** Rejects when the events could not be delivered. */
  send(events: readonly AuditEvent[], signal: AbortSignal): Promise<void>;
}

export interface BackendOptions {
  readonly mode: AuditMode;
  readonly batch: BatchOptions;
  readonly truncate: TruncateOptions;
}

export interface AuditBackend extends AsyncDisposable {
  /** Returns at once, or resolves when the event is delivered, as the mode says. False: a strict backend failed. */
  process(event: AuditEvent): MaybePromise<boolean>;
}

export interface BackendDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: AuditMetrics;
}

export function createBackend(sink: AuditSink, options: BackendOptions, deps: BackendDeps): AuditBackend {
  const { mode } = options;
  const fail = (events: number, error: unknown): void => {
    deps.metrics.countErrors(sink.name, events);
    deps.log.error("Failed to write audit events", error, { backend: sink.name, events });
  };
  const send = async (events: readonly AuditEvent[], signal: AbortSignal): Promise<boolean> => {
    const { batches, dropped } = truncate(events, options.truncate, (event) => sink.sizeOf(event));
    if (dropped > 0) fail(dropped, new Error("the event is too large, even without request and response"));
    let succeeded = dropped === 0;
    for (const batch of batches) {
      try {
        await sink.send(batch, signal);
      } catch (error) {
        fail(batch.length, error);
        succeeded = false;
      }
    }
    return succeeded;
  };
  if (mode === "batch") {
    const batch = sink.name === "log" ? joinSingles(options.batch) : options.batch;
    const parallel = sink.name === "webhook" ? PARALLEL_BATCHES_MAX : 1;
    const batcher = new EventBatcher({ ...batch, parallel }, deps.clock, async (events, signal) => {
      await send(events, signal);
    });
    return {
      process(event) {
        if (!batcher.add(event)) fail(1, new Error("the buffer is full"));
        return true;
      },
      async [Symbol.asyncDispose]() {
        await batcher[Symbol.asyncDispose]();
        await sink[Symbol.asyncDispose]();
      },
    };
  }
  const stopping = new AbortController();
  const strict = mode === "blocking-strict";
  return {
    process: async (event) => (await send([event], stopping.signal)) || !strict,
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error("the server is stopping"));
      await sink[Symbol.asyncDispose]();
    },
  };
}

/** Requests to a webhook at the same time; further batches wait in the buffer. */
const PARALLEL_BATCHES_MAX = 16;
/** Batches of one event, the default of the log, that are written together, and the least time between two writes. */
const JOINED_MAX = 1000;
const JOINED_MS = 20;

/** A write of one event costs as much CPU time as half a request. */
function joinSingles(batch: BatchOptions): BatchOptions {
  const isJoined = batch.maxSize === 1 && batch.throttle === undefined;
  return isJoined ? { ...batch, maxSize: JOINED_MAX, maxWaitMs: 0, pauseMs: JOINED_MS } : batch;
}
