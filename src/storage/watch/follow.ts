import { type RandomSource, systemRandom } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type Page, prefixRange, type Revision, StoreError, type WatchEvent } from "../store.ts";
import type { Feed, Subscriber } from "./feed.ts";

/** Who keeps something in step with all that lies below a prefix. */
export interface Follower {
  /** All there is; the first time, and again after the feed broke. */
  onList(page: Page): void;
  /** A change after the list. */
  onChange(event: WatchEvent): void;
  /** Nothing is told any more until the next list. Heard again when a list fails. */
  onInterrupt?(): void;
}

export interface FollowOptions {
  readonly feed: Feed;
  /** Ends in `/`. */
  readonly prefix: string;
  readonly follower: Follower;
  readonly clock: Clock;
  readonly log: Logger;
  /** For the jitter of retries. */
  readonly random?: RandomSource | undefined;
  /** The longest pause between two tries; 10 s when absent. */
  readonly retryMaxMs?: number | undefined;
  readonly signal: AbortSignal;
}

const RETRY_MAX_MS = 10_000;
/** A failure that lasts is told again after this time. */
const LOG_AGAIN_MS = 60_000;

/** A list, then every change after it, whatever breaks in between. Resolves when `signal` aborts. */
export async function follow(options: FollowOptions): Promise<void> {
  const { clock, log, prefix, random = systemRandom, retryMaxMs = RETRY_MAX_MS, signal } = options;
  const backoff = new Backoff({ initialMs: 50, maxMs: retryMaxMs, jitter: 0.5 }, random);
  let told = { why: "", at: 0 };
  while (!signal.aborted) {
    try {
      await followOnce(options, () => backoff.reset());
    } catch (error) {
      if (signal.aborted) return;
      options.follower.onInterrupt?.();
      const [why, at] = [String(error), clock.monotonic()];
      if (why !== told.why || at - told.at >= LOG_AGAIN_MS) {
        log.error("Cannot follow the store; trying again", error, { prefix });
        told = { why, at };
      }
      await clock.sleep(backoff.next(), signal).catch(() => {});
    }
  }
}

/** Until the feed breaks. */
async function followOnce({ feed, prefix, follower, signal }: FollowOptions, onListed: () => void): Promise<void> {
  /** What comes before the list is there. */
  let early: WatchEvent[] | undefined = [];
  let listed = 0 as Revision;
  let over = signal.aborted;
  const end = Promise.withResolvers<void>();
  const stop = (): void => {
    over = true;
    end.resolve();
  };
  const change = (event: WatchEvent): void => {
    // The feed may be behind the list.
    if ((event.type === "put" ? event.item.modified : event.revision) > listed) follower.onChange(event);
  };
  const subscriber: Subscriber = {
    onChange: (event) => (early === undefined ? change(event) : void early.push(event)),
    onBroken: () => {
      follower.onInterrupt?.();
      stop();
    },
  };
  signal.addEventListener("abort", stop);
  try {
    const since = await feed.subscribe(prefix, subscriber);
    const page = await feed.store.list(prefixRange(prefix));
    if (page.revision < since) throw new StoreError("unavailable", "Cannot use the store's list: it is an old one");
    if (over) return;
    listed = page.revision;
    follower.onList(page);
    const waiting = early;
    early = undefined;
    for (const event of waiting) change(event);
    onListed();
    await end.promise;
  } finally {
    signal.removeEventListener("abort", stop);
    feed.unsubscribe(prefix, subscriber);
  }
}
