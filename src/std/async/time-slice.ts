import { Fifo } from "../collections/fifo.ts";
import { type Clock, systemClock } from "../time/clock.ts";

/** The time of computing after which other requests proceed, in milliseconds. */
const SLICE_MS = 5;

/** The time of many short pieces of work in one turn after which the next waits for another, in milliseconds. */
const SHARED_MS = 20;

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

/**
 * Divides the turns of work that is small each time but starts many times in one turn: an event of a watch may start
 * the syncs of several objects in several controllers.
 */
class SharedSlice {
  /** When the first piece of work of the present turn began. */
  #began: { readonly clock: Clock; readonly at: number } | undefined;

  /**
   * Waits for a turn of the event loop when the work of this turn has taken long enough; otherwise undefined. By the
   * clock of the work: in simulated time its order does not depend on the load of the machine.
   */
  yield(clock: Clock): Promise<void> | undefined {
    if (this.#began?.clock !== clock) {
      this.#begin(clock);
      return undefined;
    }
    return clock.monotonic() - this.#began.at >= SHARED_MS
      ? longTurns.next().then(() => this.#begin(clock))
      : undefined;
  }

  #begin(clock: Clock): void {
    this.#began = { clock, at: clock.monotonic() };
    setImmediate(this.#reset);
  }

  readonly #reset = (): void => {
    this.#began = undefined;
  };
}

export const sharedSlice = new SharedSlice();
