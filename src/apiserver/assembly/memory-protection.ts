/** What keeps the server working near the limit of V8's heap, and ends it where it cannot. */
import type { Logger } from "../../std/log/logger.ts";
import { HeapGuard } from "../../std/memory/heap-guard.ts";
import { memoryLimits } from "../../std/memory/memory-limits.ts";
import { Watchdog } from "../../std/process/watchdog.ts";
import type { Clock } from "../../std/time/clock.ts";
import { withMemoryAdmission } from "../filters/memory-admission.ts";
import type { OnTermination } from "../filters/request-deadline.ts";
import type { RequestFilter } from "../request/request-context.ts";
import { RequestMemory } from "../request/request-memory.ts";

/** The part of the heap for requests with large bodies, which are alive at the same time. */
const REQUESTS_SHARE = 0.25;
/** Heap that a decoded and validated body takes, as a multiple of its bytes: 30 measured for many short keys. */
const HEAP_PER_BODY_BYTE = 30;
const BODIES_BYTES_MIN = 256 * 1024;
/** No turn of the event loop takes as long, unless the thread only collects garbage. */
const WATCHDOG_SECONDS = 10;

export class MemoryProtection implements Disposable {
  readonly filter: RequestFilter;
  readonly #log: Logger;
  #watchdog: Watchdog | undefined;
  #stopping = false;

  constructor(clock: Clock, log: Logger, onRejection: OnTermination) {
    this.#log = log;
    const { heapBytes } = memoryLimits();
    const bytes = Math.max(BODIES_BYTES_MIN, (heapBytes * REQUESTS_SHARE) / HEAP_PER_BODY_BYTE);
    const onCrowded = (isCrowded: boolean): void => {
      if (!this.#stopping) this.#watch(isCrowded);
    };
    const heap = new HeapGuard({ clock, onCrowded });
    this.filter = withMemoryAdmission(new RequestMemory({ clock, bytes }), heap, onRejection);
  }

  /** From now on the process ends when its event loop stops: a stop must not wait for it. */
  beginStop(): void {
    this.#stopping = true;
    this.#watch(true);
  }

  [Symbol.dispose](): void {
    this.#stopping = true;
    this.#watch(false);
  }

  #watch(wanted: boolean): void {
    if (wanted) {
      this.#watchdog ??= new Watchdog({ seconds: WATCHDOG_SECONDS });
      this.#log.v(2)?.info("Watching the event loop", { seconds: WATCHDOG_SECONDS });
      return;
    }
    this.#watchdog?.[Symbol.dispose]();
    this.#watchdog = undefined;
  }
}
