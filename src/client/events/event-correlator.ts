/** Aggregates similar events, as client-go's correlator does. */
import type { ObjectReference } from "../../api/core/references/object-reference.ts";
import type { Clock } from "../../std/time/clock.ts";
import { TokenBucket } from "../../std/time/token-bucket.ts";

export interface Occurrence {
  readonly object: ObjectReference;
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Of the event, which is created once, also when a later process records it again. */
  readonly name?: string | undefined;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The event for an occurrence and the previous ones that are equal. */
export interface EventSeries {
  name: string;
  readonly firstAt: number;
  lastAt: number;
  count: number;
  message: string;
}

/** The size of each cache; the least recently used entry is evicted. */
const CACHE_ENTRIES_MAX = 4096;
/** After this many different messages of a group in `SIMILAR_MS`, further ones are combined into one event. */
const SIMILAR_MAX = 9;
const SIMILAR_MS = 600_000;
const COMBINED = "(combined from similar events): ";
/** For one object and type: 25 events at once, then one in five minutes. */
const SPAM_BURST = 25;
const SPAM_QPS = 1 / 300;

interface SimilarGroup {
  readonly messages: Set<string>;
  lastAt: number;
}

export class EventCorrelator {
  readonly #clock: Clock;
  readonly #nameOf: (about: ObjectReference) => string;
  readonly #series = new RecentEntries<EventSeries>(CACHE_ENTRIES_MAX);
  readonly #similar = new RecentEntries<SimilarGroup>(CACHE_ENTRIES_MAX);
  readonly #buckets = new RecentEntries<TokenBucket>(CACHE_ENTRIES_MAX);

  constructor(clock: Clock, nameOf: (about: ObjectReference) => string) {
    this.#clock = clock;
    this.#nameOf = nameOf;
  }

  /** `count` is 1 for a new event. Undefined: the rate limit of the object is exceeded. */
  correlate(occurrence: Occurrence): EventSeries | undefined {
    const object = cacheKey(Object.values(toReference(occurrence.object)));
    const source = cacheKey([...Object.values({ ...toReference(occurrence.object), fieldPath: "" }), occurrence.type]);
    const bucket = this.#buckets.get(source) ?? new TokenBucket(this.#clock, SPAM_QPS, SPAM_BURST);
    this.#buckets.set(source, bucket);
    if (!bucket.take()) return undefined;
    const group = cacheKey([object, occurrence.type, occurrence.reason]);
    const combined = this.#isCombined(group, occurrence);
    const key = combined ? group : cacheKey([group, occurrence.message]);
    const message = combined ? `${COMBINED}${occurrence.message}` : occurrence.message;
    const existing = this.#series.get(key);
    const series: EventSeries = existing ?? {
      name: occurrence.name ?? this.#nameOf(occurrence.object),
      firstAt: occurrence.at,
      lastAt: occurrence.at,
      count: 0,
      message,
    };
    series.count++;
    series.lastAt = occurrence.at;
    series.message = message;
    this.#series.set(key, series);
    return series;
  }

  #isCombined(group: string, { message, at }: Occurrence): boolean {
    const existing = this.#similar.get(group);
    const similar: SimilarGroup =
      existing === undefined || at - existing.lastAt > SIMILAR_MS ? { messages: new Set(), lastAt: at } : existing;
    similar.lastAt = at;
    if (similar.messages.size < SIMILAR_MAX) similar.messages.add(message);
    this.#similar.set(group, similar);
    return similar.messages.size >= SIMILAR_MAX && !similar.messages.has(message);
  }
}

/** A map that evicts the entry that was set the longest time ago. */
class RecentEntries<V> {
  readonly #entriesMax: number;
  readonly #entries = new Map<string, V>();

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#entriesMax) return;
    const oldest = this.#entries.keys().next();
    if (oldest.done !== true) this.#entries.delete(oldest.value);
  }
}

function toReference({ kind, namespace, name, uid, apiVersion, fieldPath }: ObjectReference): ObjectReference {
  return { kind, namespace, name, uid, apiVersion, fieldPath };
}

function cacheKey(parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts.map((part) => part ?? ""));
}
