import type { Event } from "../api/core/event/schema.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { type KeyValue, type Revision, StoreError } from "../storage/store.ts";
import type { StoreFeed } from "../storage/watch/feed.ts";
import { follow } from "../storage/watch/follow.ts";

export interface EventLimits {
  /** Events about one object. */
  readonly perObject: number;
  /** Of the cluster. A namespace may have half of each. */
  readonly events: number;
  /** As stored. */
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

/** What events are about, with those there are: oldest first. */
interface EventGroup {
  readonly id: string;
  readonly namespace: string;
  readonly events: Set<StoredEvent>;
}

/** Of a limit that was reached this much is left, so that the next event does not reach it again. */
const TRIM_TO = 0.95;
/** Deletions under way at a time. */
const PARALLEL_DELETIONS = 100;

/**
 * Keeps a pod that crashes in a loop, or a controller gone wrong, from filling the store with events before their time
 * to live is over. Events are taken as they come, and nobody is refused; what is too much is deleted like what is too
 * old: of one object the oldest, and of a namespace or the cluster the oldest of those objects that have the most.
 */
export class EventBudget implements AsyncDisposable {
  readonly #options: EventBudgetOptions;
  readonly #limits: EventLimits;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  readonly #events = new Map<string, StoredEvent>();
  readonly #groups = new Map<string, EventGroup>();
  /** By namespace; the cluster's under "". Namespaces have no empty name. */
  readonly #totals = new Map<string, { events: number; bytes: number }>();
  /** What is to be deleted, oldest decision first. As many as the limits let through at most. */
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
        onList: (page) => {
          for (const known of [this.#events, this.#groups, this.#totals]) known.clear();
          for (const item of page.items.toSorted((a, b) => a.modified - b.modified)) this.#put(item);
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

  /** Brings a namespace, or with "" the cluster, back to a share of the limits when it has more. */
  #trim(namespace: string, share: number): void {
    const sum = this.#totals.get(namespace);
    const { events, bytes } = this.#limits;
    if (sum === undefined || (sum.events <= events * share && sum.bytes <= bytes * share)) return;
    const ranked: { readonly held: StoredEvent; readonly rank: number }[] = [];
    for (const about of this.#groups.values()) {
      if (namespace !== "" && about.namespace !== namespace) continue;
      // The newest of each object goes last, then the second of each, and so on.
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
    this.#options.log.info("Deleting events before their time", { namespace, events: surplus.length });
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
      // Somebody was faster; an event that was written again has been counted again.
      if (this.#closing.signal.aborted || (error instanceof StoreError && error.code === "conflict")) return;
      // What stays goes when its time to live is over.
      log.error("Cannot delete a surplus event", error, { key });
    }
  }

  #namespaceOf(key: string): string {
    const rest = key.slice(this.#options.objects.prefix().length);
    return rest.slice(0, rest.indexOf("/"));
  }

  /** An event that cannot be read is about itself. */
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
