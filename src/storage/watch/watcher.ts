import type { ApiObject } from "../../api/kind.ts";
import { expired } from "../../api/status.ts";
import { Fifo } from "../../std/collections/fifo.ts";
import type { Revision } from "../store.ts";
import type { Change } from "./change.ts";
import type { QueuePool, SlowReader } from "./queue-pool.ts";
import type { CacheEvent, Matches, ObjectEvent } from "./watch-event.ts";

export interface IndexValue {
  readonly name: string;
  readonly value: string;
}

export interface WatchOptions<T> {
  readonly prefix: string;
  /**
   * Watches changes after this revision; starts with ADDED events for all objects when absent. 410 if it is older than
   * the history.
   */
  readonly from?: Revision | undefined;
  readonly matches?: Matches<T> | undefined;
  /** Only objects with this value of an index, so that a change is offered to few watchers. */
  readonly index?: IndexValue | undefined;
  /** Sends a BOOKMARK about once a minute. */
  readonly bookmarks?: boolean | undefined;
  /** Sends a BOOKMARK after the initial events. */
  readonly initialEventsEnd?: boolean | undefined;
  /** Called once, when the initial events have been read, and with the first read when there are none. */
  readonly onInitialized?: (() => void) | undefined;
  readonly signal: AbortSignal;
}

/**
 * The largest queue of a watcher, beyond its initial events; `QueuePool` bounds the bytes of all queues. A watcher
 * above them loses its queue and ends with 410 Expired, which says why; its client lists again.
 */
export const WATCHER_QUEUE_MAX = 1024;

type PendingRead<T> = {
  readonly resolve: (result: IteratorResult<CacheEvent<T>>) => void;
  readonly reject: (error: unknown) => void;
};

/** One watch on a cache: a queue between the cache, which never waits, and the client. */
export class Watcher<T extends ApiObject> implements AsyncIterableIterator<CacheEvent<T>>, SlowReader {
  readonly options: WatchOptions<T>;
  readonly #matches: Matches<T> | undefined;
  readonly #onClose: (watcher: Watcher<T>) => void;
  readonly #onAbort = (): void => this.#abort();
  /** The initial events; not counted in the limits of the queue, as they are references into the cache. */
  #initial: (CacheEvent<T> | undefined)[];
  #initialNext = 0;
  #isInitialized: boolean;
  readonly #queue = new Fifo<CacheEvent<T>>();
  readonly #pool: QueuePool | undefined;
  #queuedBytes = 0;
  #hasOverflowed = false;
  #waiting: PendingRead<T>[] = [];
  #ended = false;
  /** Not read from the signal, which is slow where it is one of several. */
  #aborted = false;
  #error: unknown;
  /** The start of a watch that is ahead of the cache: the client has the changes up to this revision. */
  readonly #ahead: Revision;

  constructor(
    options: WatchOptions<T>,
    matches: Matches<T> | undefined,
    ahead: Revision,
    initial: CacheEvent<T>[],
    onClose: (watcher: Watcher<T>) => void,
    pool?: QueuePool,
  ) {
    this.#pool = pool;
    this.options = options;
    this.#isInitialized = options.onInitialized === undefined;
    this.#matches = matches;
    this.#ahead = ahead;
    this.#initial = initial;
    this.#onClose = onClose;
    if (options.signal.aborted) this.#abort();
    else options.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Queues the event of the change, if the change matches. */
  offer(change: Change<T>): void {
    const event = this.#eventOf(change);
    if (event !== undefined) this.#push(event);
  }

  /** Queues changes of the history before all live ones. */
  replay(changes: readonly Change<T>[]): void {
    const events: CacheEvent<T>[] = [];
    for (const change of changes) {
      const event = this.#eventOf(change);
      if (event !== undefined) events.push(event);
    }
    this.#initial = events;
  }

  bookmark(revision: Revision): void {
    if (this.#ended || revision < this.#ahead) return;
    const event: CacheEvent<T> = { type: "BOOKMARK", revision, initialEventsEnd: false };
    // Replaces a bookmark at the end of the queue: only the latest one is of use.
    if (this.#queue.last?.type === "BOOKMARK") this.#queue.replaceLast(event);
    else if (this.#queue.length < WATCHER_QUEUE_MAX) this.#push(event);
  }

  /** Ends the watch with an error after the queued events. */
  fail(error: unknown): void {
    this.#end(error);
  }

  next(): Promise<IteratorResult<CacheEvent<T>>> {
    const value = this.#aborted ? undefined : this.#take();
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (!this.#ended) return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    const error = this.#error;
    this.#error = undefined;
    return error === undefined ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error);
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Whether the client was too slow. */
  get hasOverflowed(): boolean {
    return this.#hasOverflowed;
  }

  overflow(): void {
    this.#hasOverflowed = true;
    const waiting = `${this.#queue.length} changes of ${this.#queuedBytes} bytes waited for its client`;
    this.#initial = [];
    this.#discard();
    this.#end(expired(`The watch fell too far behind: ${waiting}; list again`));
  }

  return(): Promise<IteratorResult<CacheEvent<T>>> {
    this.#end(undefined);
    this.#initial = [];
    this.#discard();
    this.#error = undefined;
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #eventOf(change: Change<T>): CacheEvent<T> | undefined {
    if (change.revision <= this.#ahead || !change.key.startsWith(this.options.prefix)) return undefined;
    return change.eventFor(this.#matches);
  }

  #take(): CacheEvent<T> | undefined {
    const initial = this.#initial[this.#initialNext];
    if (initial === undefined) {
      if (!this.#isInitialized) {
        this.#isInitialized = true;
        this.options.onInitialized?.();
      }
      const event = this.#queue.shift();
      if (event !== undefined && event.type !== "BOOKMARK") this.#dequeued(event);
      return event;
    }
    // What has been sent must not stay in memory until the last one is.
    this.#initial[this.#initialNext] = undefined;
    if (++this.#initialNext === this.#initial.length) {
      this.#initial = [];
      this.#initialNext = 0;
    }
    return initial;
  }

  #push(event: CacheEvent<T>): void {
    if (this.#ended) return;
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      waiting.resolve({ done: false, value: event });
      return;
    }
    if (this.#queue.length >= WATCHER_QUEUE_MAX) {
      this.overflow();
      return;
    }
    this.#queue.push(event);
    if (event.type === "BOOKMARK") return;
    this.#queuedBytes += event.size;
    this.#pool?.add(this, event.item);
  }

  #dequeued(event: ObjectEvent<T>): void {
    this.#queuedBytes -= event.size;
    this.#pool?.remove(this, event.item);
  }

  #discard(): void {
    for (let event = this.#queue.shift(); event !== undefined; event = this.#queue.shift()) {
      if (event.type !== "BOOKMARK") this.#dequeued(event);
    }
  }

  #abort(): void {
    this.#aborted = true;
    this.#end(undefined);
  }

  #end(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.options.signal.removeEventListener("abort", this.#onAbort);
    this.#onClose(this);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const [i, { resolve, reject }] of waiting.entries()) {
      if (i === 0 && error !== undefined) {
        this.#error = undefined;
        reject(error);
      } else resolve({ done: true, value: undefined });
    }
  }
}
