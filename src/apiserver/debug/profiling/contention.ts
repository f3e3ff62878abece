import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "../../../std/time/clock.ts";
import type { StackProfile } from "./pprof.ts";

const RESOLUTION_MS = 10;
/** In milliseconds: a turn of the event loop that was kept waiting this long, or longer, up to the next. */
const STEPS_MS = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
const PERCENTILES = 1000;

/** How long the event loop was kept from its turns since the start: what blocks in a program without threads. */
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

  /** A stack of one frame for each length of delay, so that tools which add up stacks show a table of them. */
  stacks(): StackProfile {
    const found = STEPS_MS.map((fromMs, place) => ({ fromMs, toMs: STEPS_MS[place + 1], count: 0, nanoseconds: 0 }));
    const { count } = this.#delays;
    for (let part = 1; part <= PERCENTILES && count > 0; part++) {
      // The histogram tells shares only: each thousandth stands for its turns.
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
