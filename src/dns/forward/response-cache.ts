/** Responses of other servers, by question. Bounded in bytes; those that expired stay for when no server answers. */
import { ApproximateLru } from "../../std/collections/approximate-lru.ts";
import type { Clock } from "../../std/time/clock.ts";
import { rcode } from "../wire/constants.ts";
import type { UpstreamResponse } from "../wire/upstream-response.ts";

interface Entry {
  readonly key: string;
  readonly response: UpstreamResponse;
  readonly storedAt: number;
  /** Milliseconds. */
  readonly lifetime: number;
}

export interface CachedResponse {
  readonly response: UpstreamResponse;
  readonly ageSeconds: number;
  readonly isFresh: boolean;
}

const BYTES_MAX = 4 * 2 ** 20;
/** Of an entry besides its key and its response: objects and places in maps. */
const ENTRY_BYTES = 400;
const POSITIVE_SECONDS_MAX = 3600;
/** As in CoreDNS of kubeadm: a name that was created meanwhile is found soon. */
const NEGATIVE_SECONDS_MAX = 30;
/** RFC 8767, section 5: one to three days. */
const STALE_MS_MAX = 86_400_000;

export class ResponseCache {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #entries = new Map<string, Entry>();
  readonly #lru: ApproximateLru<Entry>;

  constructor(clock: Pick<Clock, "monotonic">, bytesMax = BYTES_MAX) {
    this.#clock = clock;
    this.#lru = new ApproximateLru<Entry>(
      () => bytesMax,
      ({ key, response }) => ENTRY_BYTES + 2 * key.length + response.bytes.length + response.positions.byteLength,
      (entry) => {
        if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
      },
    );
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): CachedResponse | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const age = this.#clock.monotonic() - entry.storedAt;
    if (age >= entry.lifetime + STALE_MS_MAX) {
      this.#lru.delete(entry);
      return undefined;
    }
    this.#lru.touch(entry);
    return { response: entry.response, ageSeconds: Math.floor(age / 1000), isFresh: age < entry.lifetime };
  }

  set(key: string, response: UpstreamResponse): void {
    const isPositive = response.rcode === rcode.noError && response.counts[0] > 0;
    const seconds = Math.min(response.ttl, isPositive ? POSITIVE_SECONDS_MAX : NEGATIVE_SECONDS_MAX);
    const previous = this.#entries.get(key);
    if (seconds === 0) return;
    if (previous !== undefined) this.#lru.delete(previous);
    const entry = { key, response, storedAt: this.#clock.monotonic(), lifetime: 1000 * seconds };
    this.#entries.set(key, entry);
    this.#lru.touch(entry);
  }

  clear(): void {
    this.#lru.clear();
  }
}
