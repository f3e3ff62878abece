import type { Gauge, MetricRegistry } from "../../std/metrics/metrics.ts";

const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const WINDOW_MS = 1000;

/** The maximum number of concurrent requests within the last second. */
export class InFlightGauge {
  readonly #readOnly: PeakGauge;
  readonly #mutating: PeakGauge;

  constructor(registry: MetricRegistry) {
    const gauge = registry.gauge({
      name: "apiserver_current_inflight_requests",
      help: "Maximum number of concurrent requests of a kind in the last second.",
      stability: "STABLE",
      labels: ["request_kind"],
    });
    this.#readOnly = new PeakGauge(gauge.with("readOnly"));
    this.#mutating = new PeakGauge(gauge.with("mutating"));
  }

  /** `nowMs` is monotonic. */
  enter(method: string, nowMs: number): void {
    this.#readOnly.roll(nowMs);
    this.#mutating.roll(nowMs);
    this.#levelOf(method).enter();
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
