import type { Histogram } from "../../std/metrics/metrics.ts";

const NANOSECONDS_PER_MS = 1e6;

/**
 * A ratio whose histogram has an observation for each nanosecond: Kubernetes' TimingRatioHistogram. Times are monotonic
 * milliseconds.
 */
export class TimingRatio {
  readonly #histogram: Histogram;
  #numerator = 0;
  #denominator = 1;
  #ratio = 0;
  /** The bucket of the ratio. */
  #bucket: number;
  #lastMs: number;

  constructor(histogram: Histogram, nowMs: number) {
    this.#histogram = histogram;
    this.#lastMs = nowMs;
    this.#bucket = this.#findBucket();
  }

  add(delta: number, nowMs: number): void {
    this.set(this.#numerator + delta, nowMs);
  }

  set(numerator: number, nowMs: number): void {
    this.observe(nowMs);
    this.#numerator = numerator;
    this.#update();
  }

  setDenominator(denominator: number, nowMs: number): void {
    this.observe(nowMs);
    this.#denominator = denominator;
    this.#update();
  }

  /** Adds the time since the last call to the histogram. */
  observe(nowMs: number): void {
    const nanoseconds = (nowMs - this.#lastMs) * NANOSECONDS_PER_MS;
    if (nanoseconds <= 0) return;
    this.#lastMs = nowMs;
    this.#histogram.counts[this.#bucket]! += nanoseconds;
    this.#histogram.sum += this.#ratio * nanoseconds;
  }

  #update(): void {
    this.#ratio = this.#numerator / this.#denominator;
    this.#bucket = this.#findBucket();
  }

  #findBucket(): number {
    const { bounds } = this.#histogram;
    let index = 0;
    while (index < bounds.length && this.#ratio > bounds[index]!) index++;
    return index;
  }
}
