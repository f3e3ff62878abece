import type { Gauge, MetricOptions, MetricRegistry } from "../../std/metrics/metrics.ts";

const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const WINDOW_MS = 1000;

/** The maximum number of concurrent or queued requests within the last second. */
export class InFlightGauge {
  readonly #readOnly: PeakGauge;
  readonly #mutating: PeakGauge;

  constructor(registry: MetricRegistry, options: Pick<MetricOptions, "name" | "help" | "stability">) {
    const gauge = registry.gauge({ ...options, labels: ["request_kind"] });
    this.#readOnly = new PeakGauge(gauge.with("readOnly"));
    this.#mutating = new PeakGauge(gauge.with("mutating"));
  }

  /** `nowMs` is monotonic. */
  enter(method: string, nowMs: number): void {
    this.roll(nowMs);
    this.#levelOf(method).enter();
  }

  /** Starts a new window after a second. */
  roll(nowMs: number): void {
    this.#readOnly.roll(nowMs);
    this.#mutating.roll(nowMs);
  }

  leave(method: string): void {
    this.#levelOf(method).count--;
  }

  #levelOf(method: string): PeakGauge {
    return READS.has(method) ? this.#readOnly : this.#mutating;
  }
}

class PeakGauge {
  count = 0;
  readonly #highest: Gauge;
  #windowEnds = 0;

  constructor(highest: Gauge) {
    this.#highest = highest;
  }

  /** Starts a new window after a second. */
  roll(nowMs: number): void {
    if (nowMs < this.#windowEnds) return;
    this.#windowEnds = nowMs + WINDOW_MS;
    this.#highest.set(this.count);
  }

  enter(): void {
    this.count++;
    if (this.count > this.#highest.value) this.#highest.set(this.count);
  }
}
