import type { RandomSource } from "../crypto/random.ts";
import type { QueueMetrics } from "../metrics/queue-metrics.ts";
import { Backoff, type BackoffOptions } from "../time/backoff.ts";
import type { Clock, Timer } from "../time/clock.ts";

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** How many keys are worked on at the same time; one key never twice at once. */
  readonly concurrency: number;
  /** Delay before a key whose work failed is tried again. */
  readonly backoff: BackoffOptions;
  /** Works on a key. After a rejection `onError` is called and the key is retried after its back-off. */
  readonly work: (key: string, signal: AbortSignal) => Promise<void>;
  readonly onError: (key: string, error: unknown) => void;
  readonly metrics?: QueueMetrics | undefined;
}

/**
 * Kubernetes' rate limiting work queue: a key is queued at most once, never worked on twice at once, and retried after
 * back-off when its work failed. Bounded by the number of different keys, since a key that waits is not queued again.
 */
export class WorkQueue implements AsyncDisposable {
  readonly #options: WorkQueueOptions;
  /** Key → when it was queued, on the monotonic clock. */
  readonly #ready = new Map<string, number>();
  readonly #delayed = new Map<string, { readonly at: number; readonly timer: Timer }>();
  readonly #running = new Map<string, { readonly began: number; again: boolean; forgotten: boolean }>();
  readonly #backoffs = new Map<string, Backoff>();
  readonly #abort = new AbortController();
  readonly #observation: Disposable | undefined;
  #idle: (() => void)[] = [];

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    const { clock, metrics } = options;
    this.#observation = metrics?.observeRunning(() =>
      [...this.#running.values()].map(({ began }) => (clock.monotonic() - began) / 1000),
    );
  }

  /** Queues the key; does nothing if it waits already. A key being worked on runs once more afterwards. */
  add(key: string): void {
    if (this.#abort.signal.aborted) return;
    this.#cancelDelay(key);
    const running = this.#running.get(key);
    if (running !== undefined) {
      running.again = true;
      return;
    }
    this.#queue(key);
    this.#startNext();
  }

  /** Like `add`, later. A key that already waits for an earlier time keeps it. */
  addAfter(key: string, milliseconds: number): void {
    if (milliseconds <= 0) {
      this.add(key);
      return;
    }
    if (this.#abort.signal.aborted || this.#ready.has(key)) return;
    const at = this.#options.clock.monotonic() + milliseconds;
    const delayed = this.#delayed.get(key);
    if (delayed !== undefined && delayed.at <= at) return;
    delayed?.timer.cancel();
    this.#delayed.set(key, { at, timer: this.#options.clock.timer(milliseconds, () => this.add(key)) });
  }

  /** Drops the key's waiting work and its back-off. */
  forget(key: string): void {
    this.#cancelDelay(key);
    this.#ready.delete(key);
    this.#backoffs.delete(key);
    const running = this.#running.get(key);
    if (running !== undefined) {
      running.again = false;
      running.forgotten = true;
    }
    this.#settle();
  }

  /** Keys waiting, delayed ones included, and running. */
  get size(): number {
    return new Set([...this.#ready.keys(), ...this.#delayed.keys(), ...this.#running.keys()]).size;
  }

  /** Resolves when nothing waits to run now and nothing runs; delayed keys do not count. */
  idle(): Promise<void> {
    if (this.#ready.size === 0 && this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Stops: aborts running work and waits for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort(new DOMException("The work queue is closed", "AbortError"));
    for (const { timer } of this.#delayed.values()) timer.cancel();
    this.#delayed.clear();
    this.#ready.clear();
    this.#options.metrics?.depth.set(0);
    await this.idle();
    this.#observation?.[Symbol.dispose]();
  }

  #cancelDelay(key: string): void {
    this.#delayed.get(key)?.timer.cancel();
    this.#delayed.delete(key);
  }

  #queue(key: string): void {
    if (this.#ready.has(key)) return;
    const { clock, metrics } = this.#options;
    this.#ready.set(key, clock.monotonic());
    metrics?.adds.inc();
    metrics?.depth.set(this.#ready.size);
  }

  #startNext(): void {
    const { clock, metrics } = this.#options;
    for (const [key, since] of this.#ready) {
      if (this.#running.size >= this.#options.concurrency) return;
      this.#ready.delete(key);
      metrics?.depth.set(this.#ready.size);
      metrics?.queueDuration.observe((clock.monotonic() - since) / 1000);
      void this.#run(key);
    }
  }

  async #run(key: string): Promise<void> {
    const { clock, metrics } = this.#options;
    const began = clock.monotonic();
    const state = { began, again: false, forgotten: false };
    this.#running.set(key, state);
    let failed = false;
    try {
      await this.#options.work(key, this.#abort.signal);
    } catch (error) {
      failed = true;
      if (!this.#abort.signal.aborted) this.#options.onError(key, error);
    }
    this.#running.delete(key);
    metrics?.workDuration.observe((clock.monotonic() - began) / 1000);
    if (!failed) this.#backoffs.delete(key);
    if (!this.#abort.signal.aborted) {
      if (failed && !state.forgotten) {
        metrics?.retries.inc();
        this.addAfter(key, this.#backoff(key).next());
      }
      // A key that was added while its work failed waits for the back-off too.
      else if (state.again) this.#queue(key);
      this.#startNext();
    }
    this.#settle();
  }

  #backoff(key: string): Backoff {
    let backoff = this.#backoffs.get(key);
    if (backoff === undefined) {
      backoff = new Backoff(this.#options.backoff, this.#options.random);
      this.#backoffs.set(key, backoff);
    }
    return backoff;
  }

  #settle(): void {
    if (this.#ready.size > 0 || this.#running.size > 0) return;
    const waiting = this.#idle;
    this.#idle = [];
    for (const resolve of waiting) resolve();
  }
}
