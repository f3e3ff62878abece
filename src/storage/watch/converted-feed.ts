/**
 * The feed of a cache of custom resources with a conversion webhook: converts changes in batches, in order.
 *
 *     StoreFeed → change, change, … (bounded) → one call of the webhook → cache
 *
 * When the webhook fails or is slower than the writes, the subscription breaks and the cache lists again.
 */
import type { Wakeup } from "../../std/async/wakeup.ts";
import {
  type KeyValue,
  type Range,
  type Revision,
  type ScanPart,
  type Store,
  StoreError,
  type WatchEvent,
} from "../store.ts";
import { type Feed, revisionOf, type Subscriber } from "./feed.ts";

/** Limits of the queue: changes, and bytes of their stored values. */
const QUEUED_MAX = 4096;
const QUEUED_BYTES_MAX = 16 * 2 ** 20;

export type Convert = (items: readonly KeyValue[]) => Promise<readonly KeyValue[]>;

/** Serves one cache. */
export class ConvertedFeed implements Feed {
  readonly store: Pick<Store, "scan">;
  readonly progress: Wakeup;
  readonly #feed: Feed;
  readonly #convert: Convert;
  /** By subscriber. */
  readonly #queues = new Map<Subscriber, ConversionQueue>();

  constructor(feed: Feed, convert: Convert) {
    this.#feed = feed;
    this.#convert = convert;
    this.progress = feed.progress;
    this.store = { scan: (range) => this.#scan(range) };
  }

  get revision(): Revision {
    const { revision } = this.#feed;
    return Math.min(
      revision,
      ...[...this.#queues.values()].map(({ deliveredRevision }) => deliveredRevision),
    ) as Revision;
  }

  async subscribe(prefix: string, subscriber: Subscriber): Promise<Revision> {
    const queue = new ConversionQueue(subscriber, this.#convert, this.progress, (error) => {
      this.unsubscribe(prefix, subscriber);
      subscriber.onBroken(error);
    });
    this.#queues.set(subscriber, queue);
    return await this.#feed.subscribe(prefix, queue);
  }

  unsubscribe(prefix: string, subscriber: Subscriber): void {
    const queue = this.#queues.get(subscriber);
    if (queue === undefined) return;
    this.#queues.delete(subscriber);
    queue.end();
    this.#feed.unsubscribe(prefix, queue);
  }

  /** Converts a list; changes during the conversion stay queued until its revision is known. */
  async *#scan(range: Range): AsyncIterable<ScanPart> {
    let revision: Revision | undefined;
    for await (const part of this.#feed.store.scan(range)) {
      revision = part.revision;
      yield { items: await this.#convert(part.items), revision };
    }
    if (revision !== undefined) for (const queue of this.#queues.values()) queue.begin(revision);
  }
}

class ConversionQueue implements Subscriber {
  readonly #subscriber: Subscriber;
  readonly #convert: Convert;
  readonly #progress: Wakeup;
  readonly #break: (error: unknown) => void;
  #events: WatchEvent[] = [];
  #bytes = 0;
  /** The revision before the first queued change; infinite when the queue is empty. */
  #delivered = Number.POSITIVE_INFINITY;
  #listed: Revision | undefined;
  #running = false;
  #ended = false;

  constructor(subscriber: Subscriber, convert: Convert, progress: Wakeup, onBroken: (error: unknown) => void) {
    this.#subscriber = subscriber;
    this.#convert = convert;
    this.#progress = progress;
    this.#break = onBroken;
  }

  get deliveredRevision(): number {
    return this.#delivered;
  }

  /** Starts the conversion of changes after the list. */
  begin(listed: Revision): void {
    this.#listed = listed;
    void this.#run();
  }

  end(): void {
    this.#ended = true;
    this.#delivered = Number.POSITIVE_INFINITY;
    this.#events = [];
  }

  onChange(event: WatchEvent): void {
    if (this.#ended) return;
    if (this.#delivered === Number.POSITIVE_INFINITY) this.#delivered = revisionOf(event) - 1;
    this.#events.push(event);
    this.#bytes += sizeOf(event);
    if (this.#events.length > QUEUED_MAX || this.#bytes > QUEUED_BYTES_MAX) {
      this.#break(
        new StoreError("unavailable", "Cannot follow the store: the conversion webhook is slower than the writes"),
      );
    } else void this.#run();
  }

  onBroken(error: unknown): void {
    if (!this.#ended) this.#break(error);
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    if (this.#running || this.#listed === undefined) return;
    this.#running = true;
    try {
      while (this.#events.length > 0) await this.#deliver(this.#listed);
    } catch (error) {
      this.onBroken(error);
    } finally {
      this.#running = false;
    }
  }

  async #deliver(listed: Revision): Promise<void> {
    const events = this.#events;
    this.#delivered = revisionOf(events[0]!) - 1;
    this.#events = [];
    this.#bytes = 0;
    const fresh = events.filter((event) => revisionOf(event) > listed);
    const put = fresh.flatMap((event) => (event.type === "put" ? [event.item] : []));
    const items = put.length === 0 ? put : await this.#convert(put);
    if (this.#ended) return;
    let next = 0;
    for (const event of fresh) {
      this.#subscriber.onChange(event.type === "put" ? { ...event, item: items[next++]! } : event);
    }
    this.#delivered = this.#events[0] === undefined ? Number.POSITIVE_INFINITY : revisionOf(this.#events[0]) - 1;
    this.#progress.notify();
  }
}

/** The previous value is not converted: the cache has it. */
function sizeOf(event: WatchEvent): number {
  return event.type === "put" ? event.item.value.length : 0;
}
