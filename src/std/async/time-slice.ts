import { setImmediate as nextTurn } from "node:timers/promises";
import { systemClock } from "../time/clock.ts";

/** The time of computing after which other requests proceed, in milliseconds. */
const SLICE_MS = 10;

/** Divides a long computation of one request into slices, between which the event loop handles others. */
export class TimeSlice {
  #began = systemClock.monotonic();

  /** Waits for the next turn of the event loop when the slice is over; otherwise returns undefined. */
  yield(): Promise<void> | undefined {
    return systemClock.monotonic() - this.#began < SLICE_MS ? undefined : this.end();
  }

  /** Waits for the next turn of the event loop, before a step that is known to be long. */
  async end(): Promise<void> {
    await nextTurn();
    this.#began = systemClock.monotonic();
  }
}
