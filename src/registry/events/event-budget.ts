import type { Event } from "../../api/core/event/schema.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ObjectStore } from "../../storage/object-store.ts";
import { type KeyValue, type Revision, StoreError } from "../../storage/store.ts";
import type { StoreFeed } from "../../storage/watch/feed.ts";
import { follow } from "../../storage/watch/follow.ts";

export interface EventLimits {
  /** Events of one involved object. */
  readonly perObject: number;
  /** Events in the cluster. A namespace may have half of this and of `bytes`. */
  readonly events: number;
  /** Bytes of the stored values. */
  readonly bytes: number;
}

export const EVENT_LIMITS: EventLimits = { perObject: 100, events: 20_000, bytes: 32 * 2 ** 20 };

export interface EventBudgetOptions {
  readonly feed: StoreFeed;
  readonly objects: ObjectStore<Event>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits?: EventLimits | undefined;
}

interface StoredEvent {
  readonly key: string;
  readonly revision: Revision;
  readonly size: number;
  readonly about: EventGroup;
}

/** The events of one involved object, oldest first. */
interface EventGroup {
  readonly id: string;
  readonly namespace: string;
  readonly events: Set<StoredEvent>;
}

/** Share of a limit that is kept when it is exceeded, so that the next event does not exceed it again. */
const TRIM_TO = 0.95;
/** Parallel deletions. */
const PARALLEL_DELETIONS = 100;

/**
 * Bounds the number of stored events, so that a crash loop or a faulty controller does not fill the store before the
 * events' time to live ends. No event is rejected. Above a limit events are deleted: the oldest of an involved object,
 * and in a namespace or the cluster the oldest of the objects that have the most events.
 */
export class EventBudget implements AsyncDisposable {
  readonly #options: EventBudgetOptions;
  readonly #limits: EventLimits;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  readonly #events = new Map<string, StoredEvent>();
  readonly #groups = new Map<string, EventGroup>();
  /** By namespace; "" for the cluster. */
  readonly #totals = new Map<string, { events: number; bytes: number }>();
  /** Events to delete, in the order of eviction; bounded by the limits. */
  #surplus: StoredEvent[] = [];
  #deleting: Promise<void> | undefined;

  constructor(options: EventBudgetOptions) {
    this.#options = options;
    this.#limits = options.limits ?? EVENT_LIMITS;
    const { feed, objects, clock, log } = options;
    this.#running = follow({
      feed,
      prefix: objects.prefix(),
      clock,
      log,
      signal: this.#closing.signal,
      follower: {
        startList: () => {
          const items: KeyValue[] = [];
          return {
            add: (part) => void items.push(...part),
            complete: () => {
              for (const map of [this.#events, this.#groups, this.#totals]) map.clear();
              for (const item of items.sort((a, b) => a.modified - b.modified)) this.#put(item);
            },
          };
        },
        onChange: (event) => (event.type === "put" ? this.#put(event.item) : this.#remove(event.key)),
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#surplus = [];
    await Promise.all([this.#running, this.#deleting]);
  }

  #put(item: KeyValue): void {
    this.#remove(item.key);
    const namespace = this.#namespaceOf(item.key);
    const about = this.#groupOf(item, namespace);
    const held = { key: item.key, revision: item.modified, size: item.value.length, about };
    about.events.add(held);
    this.#events.set(item.key, held);
    this.#count(held, 1);
    if (about.events.size > this.#limits.perObject) this.#evict([...about.events].slice(0, 1));
    this.#trim(namespace, 0.5);
    this.#trim("", 1);
  }

  #remove(key: string): void {
    const held = this.#events.get(key);
    if (held === undefined) return;
    this.#events.delete(key);
    held.about.events.delete(held);
    if (held.about.events.size === 0) this.#groups.delete(held.about.id);
    this.#count(held, -1);
  }

  #count({ size, about }: StoredEvent, sign: 1 | -1): void {
    for (const name of ["", about.namespace]) {
      const sum = this.#totals.get(name) ?? { events: 0, bytes: 0 };
      sum.events += sign;
      sum.bytes += sign * size;
      if (sum.events > 0) this.#totals.set(name, sum);
      else this.#totals.delete(name);
    }
  }

  /** Evicts events of a namespace, or of the cluster (""), above its share of the limits. */
  #trim(namespace: string, share: number): void {
    const sum = this.#totals.get(namespace);
    const { events, bytes } = this.#limits;
    if (sum === undefined || (sum.events <= events * share && sum.bytes <= bytes * share)) return;
    const ranked: { readonly held: StoredEvent; readonly rank: number }[] = [];
    for (const about of this.#groups.values()) {
      if (namespace !== "" && about.namespace !== namespace) continue;
      // The newest event of each object has rank 1 and is evicted last, the second newest has rank 2, and so on.
      let rank = about.events.size;
      for (const held of about.events) ranked.push({ held, rank: rank-- });
    }
    ranked.sort((a, b) => b.rank - a.rank || a.held.revision - b.held.revision);
    const left = { ...sum };
    const surplus: StoredEvent[] = [];
    for (const { held } of ranked) {
      if (left.events <= events * share * TRIM_TO && left.bytes <= bytes * share * TRIM_TO) break;
      left.events--;
      left.bytes -= held.size;
      surplus.push(held);
    }
    this.#options.log.info("Deleting events above the limit", { namespace, events: surplus.length });
    this.#evict(surplus);
  }

  #evict(surplus: readonly StoredEvent[]): void {
    for (const held of surplus) this.#remove(held.key);
    this.#surplus.push(...surplus);
    this.#deleting ??= this.#deleteSurplus().finally(() => {
      this.#deleting = undefined;
    });
  }

  async #deleteSurplus(): Promise<void> {
    while (this.#surplus.length > 0) {
      const some = this.#surplus.splice(0, PARALLEL_DELETIONS);
      await Promise.all(some.map((held) => this.#deleteOne(held)));
    }
  }

  async #deleteOne({ key, revision }: StoredEvent): Promise<void> {
    const { feed, log } = this.#options;
    try {
      await feed.store.delete(key, revision);
    } catch (error) {
      // Deleted or updated by another write; an updated event has been added again.
      if (this.#closing.signal.aborted || (error instanceof StoreError && error.code === "conflict")) return;
      // The event is deleted when its time to live ends.
      log.error("Failed to delete an event above the limit", error, { key });
    }
  }

  #namespaceOf(key: string): string {
    const rest = key.slice(this.#options.objects.prefix().length);
    return rest.slice(0, rest.indexOf("/"));
  }

  /** An event that cannot be decoded is a group of its own. */
  #groupOf(item: KeyValue, namespace: string): EventGroup {
    let id = item.key;
    try {
      const { kind = "", namespace: of = "", name = "", uid = "" } = this.#options.objects.decode(item).involvedObject;
      id = [namespace, kind, of, name, uid].join("/");
    } catch {
      // The watch cache reports it.
    }
    const about = this.#groups.get(id) ?? { id, namespace, events: new Set<StoredEvent>() };
    this.#groups.set(id, about);
    return about;
  }
}
