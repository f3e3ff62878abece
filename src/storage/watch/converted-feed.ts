/**
 * The feed for a cache whose objects a webhook converts: changes wait until they are converted, and keep their order.
 *
 *     StoreFeed → change, change, … (bounded) → asked about together → cache
 *
 * When the webhook fails, or is too slow for what is written, the subscription breaks and the cache lists again.
 */
import type { Wakeup } from "../../std/async/wakeup.ts";
import { type KeyValue, type Range, type Revision, type Store, StoreError, type WatchEvent } from "../store.ts";
import type { Feed, Subscriber } from "./feed.ts";

/** Bytes as stored, and changes, that may wait. */
const QUEUED_MAX = 4096;
const QUEUED_BYTES_MAX = 16 * 2 ** 20;

export type Convert = (items: readonly KeyValue[]) => Promise<readonly KeyValue[]>;

/** For one cache. */
export class ConvertedFeed implements Feed {
  readonly store: Pick<Store, "list">;
  readonly progress: Wakeup;
  readonly #feed: Feed;
  readonly #convert: Convert;
  /** By subscriber. */
  readonly #waiting = new Map<Subscriber, ConversionQueue>();

  constructor(feed: Feed, convert: Convert) {
    this.#feed = feed;
    this.#convert = convert;
    this.progress = feed.progress;
    this.store = { list: (range) => this.#list(range) };
  }

  get revision(): Revision {
    const { revision } = this.#feed;
    return Math.min(revision, ...[...this.#waiting.values()].map(({ done }) => done)) as Revision;
  }

  async subscribe(prefix: string, subscriber: Subscriber): Promise<Revision> {
    const waiting = new ConversionQueue(subscriber, this.#convert, this.progress, (error) => {
      this.unsubscribe(prefix, subscriber);
      subscriber.onBroken(error);
    });
    this.#waiting.set(subscriber, waiting);
    return await this.#feed.subscribe(prefix, waiting);
  }

  unsubscribe(prefix: string, subscriber: Subscriber): void {
    const waiting = this.#waiting.get(subscriber);
    if (waiting === undefined) return;
    this.#waiting.delete(subscriber);
    waiting.end();
    this.#feed.unsubscribe(prefix, waiting);
  }

  /** What changes meanwhile is looked at when it is known what the list shows already. */
  async #list(range: Range) {
    const page = await this.#feed.store.list(range);
    const items = await this.#convert(page.items);
    for (const waiting of this.#waiting.values()) waiting.begin(page.revision);
    return { ...page, items };
  }
}

class ConversionQueue implements Subscriber {
  readonly #subscriber: Subscriber;
  readonly #convert: Convert;
  readonly #progress: Wakeup;
  readonly #break: (error: unknown) => void;
  #events: WatchEvent[] = [];
  #bytes = 0;
  /** Handed on up to here, while something waits. */
  #before = Number.POSITIVE_INFINITY;
  #listed: Revision | undefined;
  #running = false;
  #ended = false;

  constructor(subscriber: Subscriber, convert: Convert, progress: Wakeup, onBroken: (error: unknown) => void) {
    this.#subscriber = subscriber;
    this.#convert = convert;
    this.#progress = progress;
    this.#break = onBroken;
  }

  get done(): number {
    return this.#before;
  }

  /** The list is there: what follows it is converted. */
  begin(listed: Revision): void {
    this.#listed = listed;
    void this.#run();
  }

  end(): void {
    this.#ended = true;
    this.#before = Number.POSITIVE_INFINITY;
    this.#events = [];
  }

  onChange(event: WatchEvent): void {
    if (this.#ended) return;
    if (this.#before === Number.POSITIVE_INFINITY) this.#before = revisionOf(event) - 1;
    this.#events.push(event);
    this.#bytes += sizeOf(event);
    if (this.#events.length > QUEUED_MAX || this.#bytes > QUEUED_BYTES_MAX) {
      this.#break(new StoreError("unavailable", "More is written than the conversion webhook converts"));
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
      while (this.#events.length > 0) await this.#handOn(this.#listed);
    } catch (error) {
      this.onBroken(error);
    } finally {
      this.#running = false;
    }
  }

  async #handOn(listed: Revision): Promise<void> {
    const events = this.#events;
    this.#before = revisionOf(events[0]!) - 1;
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
    this.#before = this.#events[0] === undefined ? Number.POSITIVE_INFINITY : revisionOf(this.#events[0]) - 1;
    this.#progress.notify();
  }
}

function revisionOf(event: WatchEvent): number {
  return event.type === "put" ? event.item.modified : event.revision;
}

/** What it held before is not converted: the cache knows it. */
function sizeOf(event: WatchEvent): number {
  return event.type === "put" ? event.item.value.length : 0;
}
