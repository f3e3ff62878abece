import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "../std/time/clock.ts";
import type { StackProfile } from "./pprof.ts";

const RESOLUTION_MS = 10;
/** The lower bounds of the histogram of event loop delays. */
const STEPS_MS = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
const PERCENTILES = 1000;

/** Measures the delay of the event loop since the start, as the block profile of a program without threads. */
export class EventLoopContention implements Disposable {
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #delays: ReturnType<typeof monitorEventLoopDelay>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.now();
    this.#delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    this.#delays.enable();
  }

  /** One stack of a single frame for each bucket, so that pprof shows a table of them. */
  stacks(): StackProfile {
    const found = STEPS_MS.map((fromMs, index) => ({ fromMs, toMs: STEPS_MS[index + 1], count: 0, nanoseconds: 0 }));
    const { count } = this.#delays;
    for (let part = 1; part <= PERCENTILES && count > 0; part++) {
      // The histogram has percentiles only: each of them represents a thousandth of the samples.
      const lateMs = this.#delays.percentile((part / PERCENTILES) * 100) / 1e6 - RESOLUTION_MS;
      const step = found.findLast(({ fromMs }) => lateMs >= fromMs);
      if (step === undefined) continue;
      step.count += count / PERCENTILES;
      step.nanoseconds += (count / PERCENTILES) * lateMs * 1e6;
    }
    const name = (fromMs: number, toMs: number | undefined): string =>
      toMs === undefined ? `event loop late by ${fromMs} ms and more` : `event loop late by ${fromMs} to ${toMs} ms`;
    return {
      types: [
        { type: "contentions", unit: "count" },
        { type: "delay", unit: "nanoseconds" },
      ],
      samples: found
        .filter((step) => step.count > 0)
        .map(({ fromMs, toMs, count, nanoseconds }) => ({
          frames: [{ functionName: name(fromMs, toMs), file: "", startLine: 0 }],
          values: [Math.max(1, count), nanoseconds],
        })),
      period: { type: "contentions", unit: "count", value: 1 },
      startedMs: this.#startedMs,
      durationMs: this.#clock.now() - this.#startedMs,
    };
  }

  [Symbol.dispose](): void {
    this.#delays.disable();
  }
}
