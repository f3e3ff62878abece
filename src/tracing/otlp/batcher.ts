/** Collects spans in batches, as OpenTelemetry's batch span processor; exports one batch at a time. */
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import type { Span, SpanSink } from "../span.ts";
import { type EncodedSpan, encodeSpan } from "./encode.ts";

/** OpenTelemetry's defaults. */
const QUEUE_MAX = 2048;
const BATCH_MAX = 512;
const DELAY_MS = 5000;
const RETRY = { initialMs: 5000, maxMs: 30_000, factor: 1.5, jitter: 0.5 };
/** After this time a batch that cannot be delivered is dropped. */
const RETRY_MS_MAX = 60_000;
/** How long a stop waits for the collector. */
const STOP_MS_MAX = 5000;

export class ExportError extends Error {
  override readonly name = "ExportError";
  /** Whether a later attempt may succeed. */
  readonly retryable: boolean;

  constructor(message: string, retryable: boolean, options?: ErrorOptions) {
    super(message, options);
    this.retryable = retryable;
  }
}

export interface BatcherDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Rejects with an `ExportError`, also when the signal aborts. */
  readonly send: (spans: readonly EncodedSpan[], signal: AbortSignal) => Promise<void>;
}

export class SpanBatcher implements SpanSink, AsyncDisposable {
  readonly #deps: BatcherDeps;
  readonly #stop = new AbortController();
  /** Set when a stop no longer waits for retries. */
  readonly #stopping = new AbortController();
  #queue: EncodedSpan[] = [];
  #timer: Timer | undefined;
  #exporting: Promise<void> | undefined;
  #dropped = 0;
  #isFailing = false;

  constructor(deps: BatcherDeps) {
    this.#deps = deps;
  }

  /** Drops the span when the queue is full. */
  add(span: Span): void {
    if (this.#queue.length >= QUEUE_MAX || this.#stopping.signal.aborted) {
      this.#dropped++;
      return;
    }
    this.#queue.push(encodeSpan(span));
    if (this.#queue.length >= BATCH_MAX) this.#start();
    else this.#timer ??= this.#deps.clock.timer(DELAY_MS, () => this.#start());
  }

  #start(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#exporting !== undefined || this.#queue.length === 0) return;
    this.#exporting = this.#export(this.#queue.splice(0, BATCH_MAX)).finally(() => {
      this.#exporting = undefined;
      if (this.#queue.length >= BATCH_MAX || this.#stopping.signal.aborted) this.#start();
      else if (this.#queue.length > 0) this.#timer ??= this.#deps.clock.timer(DELAY_MS, () => this.#start());
    });
  }

  async #export(batch: readonly EncodedSpan[]): Promise<void> {
    const { clock, random } = this.#deps;
    const backoff = new Backoff(RETRY, random);
    const deadline = clock.monotonic() + RETRY_MS_MAX;
    for (;;) {
      try {
        await this.#deps.send(batch, this.#stop.signal);
        this.#delivered();
        return;
      } catch (error) {
        const delayMs = backoff.next();
        const isLast = clock.monotonic() + delayMs > deadline || this.#stopping.signal.aborted;
        const drops = isLast || !(error instanceof ExportError && error.retryable);
        if (drops) this.#dropped += batch.length;
        this.#failed(error, drops);
        if (drops) return;
        // A stop ends the wait; the batch is then sent once more.
        await clock.sleep(delayMs, this.#stopping.signal).catch(() => {});
      }
    }
  }

  #delivered(): void {
    if (this.#isFailing || this.#dropped > 0) {
      this.#deps.log.info("Exported traces again", { droppedSpans: this.#dropped });
    }
    this.#isFailing = false;
    this.#dropped = 0;
  }

  /** Logs the first failure, not each retry. */
  #failed(error: unknown, dropped: boolean): void {
    const log = this.#isFailing ? this.#deps.log.v(4) : this.#deps.log;
    this.#isFailing = true;
    log?.error("Failed to export traces", error, dropped ? { droppedSpans: this.#dropped } : {});
  }

  /** Exports what is queued, if the collector receives it in time. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new Error("the program is stopping"));
    const deadline = this.#deps.clock.timer(STOP_MS_MAX, () => this.#stop.abort(new Error("the program is stopping")));
    this.#start();
    while (this.#exporting !== undefined) await this.#exporting;
    deadline.cancel();
    this.#timer?.cancel();
  }
}
