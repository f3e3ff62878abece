import { Fifo } from "../collections/fifo.ts";
import { systemClock } from "../time/clock.ts";

/** The time of computing after which other requests proceed, in milliseconds. */
const SLICE_MS = 5;

/** To decode more takes so long that it is a step with a turn of its own. */
export const LARGE_BYTES = 64 * 1024;

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

  /** Waits for a turn of the event loop when the slice is over; otherwise returns undefined. */
  yield(): Promise<void> | undefined {
    return this.isOver ? this.end() : undefined;
  }

  /** Waits for a turn of the event loop, before a step that is known to be long. */
  async end(): Promise<void> {
    await longTurns.next();
    this.#began = systemClock.monotonic();
  }
}

/**
 * Gives each long step a turn of the event loop of its own: a short request waits for one of them, however many
 * requests compute. A request waits for one turn at a time, which bounds the queue.
 */
class LongTurns {
  readonly #waiting = new Fifo<() => void>();
  /** Those that came in the present turn, which may have had a long step already. */
  readonly #newcomers = new Fifo<() => void>();
  #isScheduled = false;

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#newcomers.push(resolve);
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      setImmediate(this.#proceed);
    });
  }

  readonly #proceed = (): void => {
    this.#waiting.shift()?.();
    for (let next = this.#newcomers.shift(); next !== undefined; next = this.#newcomers.shift()) {
      this.#waiting.push(next);
    }
    this.#isScheduled = this.#waiting.length > 0;
    if (this.#isScheduled) setImmediate(this.#proceed);
  };
}

/** One queue per thread: the event loop belongs to the thread, and all servers of a process share its turns. */
const longTurns = new LongTurns();
