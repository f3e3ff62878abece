/** The sleep of a pod's worker, which ends by time or by `wake`. A worker that sleeps holds no start slot. */
import type { Clock } from "../../../std/time/clock.ts";
import type { StartLimiter } from "./start-limiter.ts";

/** Created once: an error for each wake-up would cost more than the wake-up. */
const WOKEN = new Error("woken");

export class WorkerSleep {
  readonly #clock: Clock;
  #isWoken = false;
  #wake: (() => void) | undefined;
  #isSleeping = false;
  /** Held while the pod starts. */
  #startSlot: Disposable | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isSleeping(): boolean {
    return this.#isSleeping;
  }

  /** Sleeping, and `wake` would end that. */
  get isWakeable(): boolean {
    return this.#wake !== undefined;
  }

  /** Ends the current `wait`, or else the next one at once. */
  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  /** Waits for a start slot and holds it until the next sleep. Rejects when the signal aborts. */
  async acquireStartSlot(limiter: Pick<StartLimiter, "acquire">, priority: number, signal: AbortSignal): Promise<void> {
    this.#startSlot ??= await limiter.acquire(priority, signal);
  }

  releaseStartSlot(): void {
    this.#startSlot?.[Symbol.dispose]();
    this.#startSlot = undefined;
  }

  /** Sleeps until `wake`, at most that many milliseconds; whether it was woken. Rejects when the signal aborts. */
  async wait(milliseconds: number, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    this.releaseStartSlot();
    if (!this.#isWoken) {
      const woken = new AbortController();
      this.#wake = () => woken.abort(WOKEN);
      await this.pause(milliseconds, AbortSignal.any([woken.signal, signal])).catch(() => undefined);
      this.#wake = undefined;
    }
    const isWoken = this.#isWoken;
    this.#isWoken = false;
    signal.throwIfAborted();
    return isWoken;
  }

  /** Sleeps that many milliseconds; `wake` does not end it. Rejects when the signal aborts. */
  async pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    this.releaseStartSlot();
    this.#isSleeping = true;
    await this.#clock.sleep(milliseconds, signal).finally(() => {
      this.#isSleeping = false;
    });
  }
}
