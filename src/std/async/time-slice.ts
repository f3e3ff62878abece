import { setImmediate as nextTurn } from "node:timers/promises";
import { systemClock } from "../time/clock.ts";

/** The time of computing after which other requests proceed, in milliseconds. */
const SLICE_MS = 10;

/** Divides a long computation of one request into slices, between which the event loop handles others. */
export class TimeSlice {
  #began = systemClock.monotonic();

  /**
   * Whether others should proceed. In the path of every write `if (slice.isOver) await slice.end()` takes less time
   * than an await of `undefined`, during which the requests in flight proceed by turns.
   */
  get isOver(): boolean {
    return systemClock.monotonic() - this.#began >= SLICE_MS;
  }

  /** Waits for the next turn of the event loop when the slice is over; otherwise returns undefined. */
  yield(): Promise<void> | undefined {
    return this.isOver ? this.end() : undefined;
  }

  /** Waits for the next turn of the event loop, before a step that is known to be long. */
  async end(): Promise<void> {
    await nextTurn();
    this.#began = systemClock.monotonic();
  }
}
