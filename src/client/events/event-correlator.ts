/** Which events are told once more rather than anew: as client-go's correlator. */
import type { ObjectReference } from "../../api/core/references/object-reference.ts";
import type { Clock } from "../../std/time/clock.ts";
import { TokenBucket } from "../../std/time/token-bucket.ts";

export interface Occurrence {
  readonly about: ObjectReference;
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** What the server is to know of an occurrence and those before it that were the same. */
export interface Tally {
  name: string;
  readonly firstAt: number;
  lastAt: number;
  count: number;
  message: string;
}

/** Entries remembered of each sort; the one longest not seen is forgotten. */
const REMEMBERED_MAX = 4096;
/** So many different messages about one thing in `SIMILAR_MS`, and the rest become one event. */
const SIMILAR_MAX = 10;
const SIMILAR_MS = 600_000;
const COMBINED = "(combined from similar events): ";
/** About one object: 25 of a type at once, then one in five minutes. */
const SPAM_BURST = 25;
const SPAM_QPS = 1 / 300;

interface Similar {
  readonly messages: Set<string>;
  lastAt: number;
}

export class EventCorrelator {
  readonly #clock: Clock;
  readonly #nameOf: (about: ObjectReference) => string;
  readonly #tallies = new Recent<Tally>(REMEMBERED_MAX);
  readonly #similar = new Recent<Similar>(REMEMBERED_MAX);
  readonly #buckets = new Recent<TokenBucket>(REMEMBERED_MAX);

  constructor(clock: Clock, nameOf: (about: ObjectReference) => string) {
    this.#clock = clock;
    this.#nameOf = nameOf;
  }

  /** `count` is 1 for a new event. Undefined: there are too many about this object. */
  observe(occurrence: Occurrence): Tally | undefined {
    const object = keyOf(Object.values(normalised(occurrence.about)));
    const source = keyOf([...Object.values({ ...normalised(occurrence.about), fieldPath: "" }), occurrence.type]);
    const bucket = this.#buckets.get(source) ?? new TokenBucket(this.#clock, SPAM_QPS, SPAM_BURST);
    this.#buckets.set(source, bucket);
    if (!bucket.take()) return undefined;
    const group = keyOf([object, occurrence.type, occurrence.reason]);
    const combined = this.#isOneOfMany(group, occurrence);
    const key = combined ? group : keyOf([group, occurrence.message]);
    const message = combined ? `${COMBINED}${occurrence.message}` : occurrence.message;
    const known = this.#tallies.get(key);
    const tally: Tally = known ?? {
      name: this.#nameOf(occurrence.about),
      firstAt: occurrence.at,
      lastAt: occurrence.at,
      count: 0,
      message,
    };
    tally.count++;
    tally.lastAt = occurrence.at;
    tally.message = message;
    this.#tallies.set(key, tally);
    return tally;
  }

  #isOneOfMany(group: string, { message, at }: Occurrence): boolean {
    const known = this.#similar.get(group);
    const similar: Similar =
      known === undefined || at - known.lastAt > SIMILAR_MS ? { messages: new Set(), lastAt: at } : known;
    similar.lastAt = at;
    if (similar.messages.size < SIMILAR_MAX) similar.messages.add(message);
    this.#similar.set(group, similar);
    return similar.messages.size >= SIMILAR_MAX && !similar.messages.has(message);
  }
}

/** A map that forgets what was set longest ago. */
class Recent<V> {
  readonly #most: number;
  readonly #entries = new Map<string, V>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#most) return;
    const oldest = this.#entries.keys().next();
    if (oldest.done !== true) this.#entries.delete(oldest.value);
  }
}

function normalised({ kind, namespace, name, uid, apiVersion, fieldPath }: ObjectReference): ObjectReference {
  return { kind, namespace, name, uid, apiVersion, fieldPath };
}

function keyOf(parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts.map((part) => part ?? ""));
}
