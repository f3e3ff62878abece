/** Mode `batch`: events wait in a bounded buffer and are sent in batches, at a bounded rate. */
import { Fifo } from "../std/collections/fifo.ts";
import type { Clock, Timer } from "../std/time/clock.ts";
import { TokenBucket } from "../std/time/token-bucket.ts";
import type { AuditEvent } from "./event.ts";

export interface BatchOptions {
  /** Events that wait at most; further ones are dropped. */
  readonly bufferSize: number;
  readonly maxSize: number;
  /** Milliseconds after which a batch is sent although it is not full; 0: at once. */
  readonly maxWaitMs: number;
  /** Undefined: no limit of the rate. */
  readonly throttle: { readonly qps: number; readonly burst: number } | undefined;
  /** The least time between the starts of two batches that are not full, in milliseconds; 0 when absent. */
  readonly pauseMs?: number | undefined;
}

/** How long a stop waits for batches in progress, in milliseconds. */
const STOP_MS_MAX = 20_000;

export class EventBatcher implements AsyncDisposable {
  readonly #options: BatchOptions & { readonly parallel: number };
  readonly #clock: Clock;
  readonly #send: (events: readonly AuditEvent[], signal: AbortSignal) => Promise<void>;
  readonly #waiting = new Fifo<AuditEvent>();
  readonly #bucket: TokenBucket | undefined;
  readonly #giveUp = new AbortController();
  readonly #sending = new Set<Promise<void>>();
  #timer: Timer | undefined;
  /** When the oldest waiting event has waited long enough. */
  #dueAt = 0;
  #startedAt = Number.NEGATIVE_INFINITY;
  #isStopping = false;

  constructor(
    options: BatchOptions & { readonly parallel: number },
    clock: Clock,
    send: (events: readonly AuditEvent[], signal: AbortSignal) => Promise<void>,
  ) {
    this.#options = options;
    this.#clock = clock;
    this.#send = send;
    const { throttle } = options;
    this.#bucket = throttle === undefined ? undefined : new TokenBucket(clock, throttle.qps, throttle.burst);
  }

  /** False: the buffer is full. */
  add(event: AuditEvent): boolean {
    if (this.#waiting.length >= this.#options.bufferSize) return false;
    if (this.#waiting.length === 0) this.#dueAt = this.#dueAfter(this.#options.maxWaitMs);
    this.#waiting.push(event);
    if (this.#waiting.length === 1 || this.#waiting.length >= this.#options.maxSize) this.#schedule();
    return true;
  }

  #dueAfter(waitMs: number): number {
    return Math.max(this.#clock.monotonic() + waitMs, this.#startedAt + (this.#options.pauseMs ?? 0));
  }

  /** Sends what is due, and sets the timer for what is not. */
  #schedule(): void {
    while (this.#waiting.length > 0 && this.#sending.size < this.#options.parallel) {
      const now = this.#clock.monotonic();
      const isFull = this.#waiting.length >= this.#options.maxSize;
      const waitMs = this.#isStopping ? 0 : this.#delay(isFull ? 0 : this.#dueAt - now);
      if (waitMs > 0) {
        this.#wait(waitMs);
        return;
      }
      this.#start();
    }
  }

  /** Milliseconds until a batch that is due after `dueMs` may be sent; 0: a token was taken for it. */
  #delay(dueMs: number): number {
    if (dueMs > 0) return dueMs;
    return this.#bucket === undefined || this.#bucket.take() ? 0 : this.#bucket.waitMs;
  }

  #wait(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.timer(ms, () => {
      this.#timer = undefined;
      this.#schedule();
    });
  }

  #start(): void {
    const batch: AuditEvent[] = [];
    while (batch.length < this.#options.maxSize) {
      const event = this.#waiting.shift();
      if (event === undefined) break;
      batch.push(event);
    }
    this.#startedAt = this.#clock.monotonic();
    this.#dueAt = this.#dueAfter(this.#options.maxWaitMs);
    const sending = this.#send(batch, this.#giveUp.signal).finally(() => {
      this.#sending.delete(sending);
      this.#schedule();
    });
    this.#sending.add(sending);
  }

  /** Sends what waits, without the limit of the rate. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#timer?.cancel();
    const deadline = this.#clock.timer(STOP_MS_MAX, () => this.#giveUp.abort(new Error("the server is stopping")));
    this.#schedule();
    while (this.#sending.size > 0) await Promise.allSettled(this.#sending);
    deadline.cancel();
  }
}
