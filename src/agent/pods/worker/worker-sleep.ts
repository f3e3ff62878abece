/**
 * What a worker does between two pieces of work: it rests until time has passed, or somebody rouses it. Who rests does
 * not keep others from starting.
 */
import type { Clock } from "../../../std/time/clock.ts";
import type { StartLimiter } from "./start-limiter.ts";

/** Made once: an error for each time that somebody is roused would cost more than the rousing. */
const WOKEN = new Error("roused");

export class WorkerSleep {
  readonly #clock: Clock;
  #isRoused = false;
  #wake: (() => void) | undefined;
  #isResting = false;
  /** To start, while the machine is busy. */
  #turn: Disposable | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Nothing goes on but resting. */
  get isSleeping(): boolean {
    return this.#isResting;
  }

  /** Nothing goes on but resting, and `rouse` would end it. */
  get isWakeable(): boolean {
    return this.#wake !== undefined;
  }

  /** Ends the wait, or lets the next one end at once. */
  wake(): void {
    this.#isRoused = true;
    this.#wake?.();
  }

  /** Until it is its turn to start, which lasts until the next rest. Rejects when the signal aborts. */
  async acquireStartSlot(turns: Pick<StartLimiter, "acquire">, priority: number, signal: AbortSignal): Promise<void> {
    this.#turn ??= await turns.acquire(priority, signal);
  }

  releaseStartSlot(): void {
    this.#turn?.[Symbol.dispose]();
    this.#turn = undefined;
  }

  /** Until somebody rouses, but no longer than that many milliseconds. Rejects when the signal aborts. */
  async wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.releaseStartSlot();
    if (!this.#isRoused) {
      const cut = new AbortController();
      this.#wake = () => cut.abort(WOKEN);
      await this.pause(milliseconds, AbortSignal.any([cut.signal, signal])).catch(() => undefined);
      this.#wake = undefined;
    }
    this.#isRoused = false;
    signal.throwIfAborted();
  }

  /** That many milliseconds, whoever rouses. Rejects when the signal aborts. */
  async pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    this.releaseStartSlot();
    this.#isResting = true;
    await this.#clock.sleep(milliseconds, signal).finally(() => {
      this.#isResting = false;
    });
  }
}
