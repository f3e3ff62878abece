/** Moments of a value over time. */

export interface DemandMoments {
  readonly durationMs: number;
  /** Weighted by time, as the deviation; `NaN` without a duration. */
  readonly average: number;
  readonly deviation: number;
  readonly max: number;
}

/** Times are monotonic milliseconds. */
export class DemandIntegrator {
  #value = 0;
  #lastMs: number;
  #startedMs: number;
  /** Integrals over time of the value and of its square. */
  #sum = 0;
  #squares = 0;
  #max = 0;

  constructor(nowMs: number) {
    this.#lastMs = nowMs;
    this.#startedMs = nowMs;
  }

  get value(): number {
    return this.#value;
  }

  set(value: number, nowMs: number): void {
    this.#accumulate(nowMs);
    this.#value = value;
    if (value > this.#max) this.#max = value;
  }

  /** Returns the moments since the last call, and begins anew with the current value. */
  reset(nowMs: number): DemandMoments {
    this.#accumulate(nowMs);
    const durationMs = nowMs - this.#startedMs;
    const average = this.#sum / durationMs;
    const variance = this.#squares / durationMs - average * average;
    const moments = { durationMs, average, deviation: Math.sqrt(Math.max(0, variance)), max: this.#max };
    this.#startedMs = nowMs;
    this.#sum = 0;
    this.#squares = 0;
    this.#max = this.#value;
    return moments;
  }

  #accumulate(nowMs: number): void {
    const elapsed = nowMs - this.#lastMs;
    this.#lastMs = nowMs;
    const weighted = this.#value * elapsed;
    this.#sum += weighted;
    this.#squares += weighted * this.#value;
  }
}
