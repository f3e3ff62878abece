import { LARGE_BYTES, TimeSlice } from "../../std/async/time-slice.ts";
import { Wakeup } from "../../std/async/wakeup.ts";
import { type RandomSource, systemRandom } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type Range, type Revision, type Store, StoreError, type WatchBatch, type WatchEvent } from "../store.ts";

export interface StoreFeedOptions {
  readonly store: Store;
  /** The range of all keys of subscribers: `prefixRange("/registry/")`. */
  readonly range: Range;
  readonly clock: Clock;
  readonly log: Logger;
  /** For the jitter of retries. */
  readonly random?: RandomSource | undefined;
}

/** Receives the changes below a prefix. One that throws loses its subscription; others keep theirs. */
export interface Subscriber {
  onChange(event: WatchEvent): void;
  /** The subscription has ended, and changes may be missing: the subscriber subscribes and lists again. */
  onBroken(error: unknown): void;
}

/** The source of changes of a watch cache. */
export interface Feed {
  readonly store: Pick<Store, "scan">;
  /** Notified whenever `revision` has grown, or a subscriber's own state has. */
  readonly progress: Wakeup;
  /** All changes up to this revision have been delivered to the subscribers. */
  readonly revision: Revision;
  subscribe(prefix: string, subscriber: Subscriber): Promise<Revision>;
  unsubscribe(prefix: string, subscriber: Subscriber): void;
}

/**
 * One watch on the store for all caches of a server: a write costs one wake-up and one lookup, however many kinds there
 * are. Starts with the first subscriber.
 *
 * A subscriber misses no change when it subscribes first, queues changes, lists, and then drops the queued changes that
 * the list contains. `revision` may be behind the list for a moment.
 */
export class StoreFeed implements Feed, AsyncDisposable {
  readonly store: Store;
  /** Notified whenever `revision` has grown, or a subscriber's own state has. */
  readonly progress = new Wakeup();
  /** The revision of the store before this server used it. */
  readonly opened: Revision;
  readonly #options: StoreFeedOptions;
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;
  /** Set while the feed waits to retry after a failure. */
  #pause: PromiseWithResolvers<void> | undefined;
  #revision = 0 as Revision;

  constructor(options: StoreFeedOptions) {
    this.#options = options;
    this.store = options.store;
    this.opened = options.store.current();
  }

  /** All changes up to this revision have been delivered to the subscribers. */
  get revision(): Revision {
    return this.#revision;
  }

  /**
   * Delivers changes of keys that start with `prefix`, which ends in `/`, after the revision that this resolves with; a
   * list that follows is not older. Rejects when the feed is closed.
   */
  async subscribe(prefix: string, subscriber: Subscriber): Promise<Revision> {
    this.#closing.signal.throwIfAborted();
    if (this.#running === undefined) {
      this.#revision = this.store.current();
      this.#running = this.#run();
    }
    while (this.#pause !== undefined) await this.#pause.promise;
    this.#closing.signal.throwIfAborted();
    const subscribers = this.#subscribers.get(prefix) ?? new Set<Subscriber>();
    this.#subscribers.set(prefix, subscribers);
    subscribers.add(subscriber);
    return this.#revision;
  }

  unsubscribe(prefix: string, subscriber: Subscriber): void {
    const subscribers = this.#subscribers.get(prefix);
    subscribers?.delete(subscriber);
    if (subscribers?.size === 0) this.#subscribers.delete(prefix);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const error = new StoreError("closed", "Cannot follow the store: the feed is closed");
    this.#closing.abort(error);
    await this.#running;
    this.#breakAll(error);
    this.#pause?.resolve();
  }

  async #run(): Promise<void> {
    const { clock, log, random = systemRandom, range } = this.#options;
    const { signal } = this.#closing;
    const backoff = new Backoff({ initialMs: 50, maxMs: 10_000, jitter: 0.5 }, random);
    while (!signal.aborted) {
      try {
        for await (const batch of this.store.watch(range, this.#revision, signal)) {
          backoff.reset();
          await this.#deliverAll(batch);
        }
      } catch (error) {
        if (signal.aborted) return;
        log.error("The watch of the store failed; listing again", error);
        this.#pause = Promise.withResolvers();
        this.#breakAll(error);
        await clock.sleep(backoff.next(), signal).catch(() => {});
        this.#revision = this.store.current();
        this.#pause.resolve();
        this.#pause = undefined;
      }
    }
  }

  /** In no turn of the event loop do subscribers have changes beyond `revision`: a watch would receive them again. */
  async #deliverAll({ events, revision }: WatchBatch): Promise<void> {
    const slice = new TimeSlice();
    let previous: WatchEvent | undefined;
    for (const event of events) {
      // Between the changes of one revision the subscribers are in no state that a client may read.
      if (previous === undefined || revisionOf(previous) !== revisionOf(event)) {
        const turn = isLarge(event) ? slice.end() : slice.yield();
        if (turn !== undefined) {
          if (previous !== undefined) this.#advance(revisionOf(previous));
          await turn;
        }
      }
      this.#dispatch(event);
      previous = event;
    }
    this.#advance(revision);
  }

  #advance(revision: Revision): void {
    this.#revision = revision;
    this.progress.notify();
  }

  #dispatch(event: WatchEvent): void {
    const key = event.type === "put" ? event.item.key : event.key;
    // A prefix ends at one of the few slashes of the key.
    for (let slash = key.indexOf("/", 1); slash >= 0; slash = key.indexOf("/", slash + 1)) {
      const prefix = key.slice(0, slash + 1);
      const subscribers = this.#subscribers.get(prefix);
      if (subscribers !== undefined) for (const subscriber of subscribers) this.#deliver(prefix, subscriber, event);
    }
  }

  #deliver(prefix: string, subscriber: Subscriber, event: WatchEvent): void {
    try {
      subscriber.onChange(event);
    } catch (error) {
      this.#options.log.error("A subscriber failed to process a change; it lists again", error, { prefix });
      this.unsubscribe(prefix, subscriber);
      subscriber.onBroken(error);
    }
  }

  #breakAll(error: unknown): void {
    const all = [...this.#subscribers.values()].flatMap((subscribers) => [...subscribers]);
    this.#subscribers.clear();
    for (const subscriber of all) subscriber.onBroken(error);
    this.progress.notify();
  }
}

function isLarge(event: WatchEvent): boolean {
  return event.type === "put" && event.item.value.length > LARGE_BYTES;
}

/** The revision of the change. */
export function revisionOf(event: WatchEvent): Revision {
  return event.type === "put" ? event.item.modified : event.revision;
}
