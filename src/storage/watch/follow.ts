import { type RandomSource, systemRandom } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type KeyValue, prefixRange, type Revision, type ScanPart, StoreError, type WatchEvent } from "../store.ts";
import type { Feed, Subscriber } from "./feed.ts";

/** Receives one list, in parts. It is abandoned when the feed or the list fails. */
export interface ListReceiver {
  add(items: readonly KeyValue[]): void;
  /** Called after the last part. */
  complete(revision: Revision): void;
}

/** Keeps a copy of the keys below a prefix up to date. */
export interface Follower {
  /** Called at the start, and after each failure of the feed: all items follow. */
  startList(): ListReceiver;
  /** Receives a change after the list. */
  onChange(event: WatchEvent): void;
  /** Called when the feed or a list fails: no changes follow until the next list. */
  onInterrupt?(error: unknown): void;
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
  /** Maximum delay between retries; 10 s when absent. */
  readonly retryMaxMs?: number | undefined;
  readonly signal: AbortSignal;
}

const RETRY_MAX_MS = 10_000;
/** A failure that persists is logged again after this time. */
const LOG_AGAIN_MS = 60_000;

/** Lists, then delivers every change; retries after failures. Resolves when `signal` aborts. */
export async function follow(options: FollowOptions): Promise<void> {
  const { clock, log, prefix, random = systemRandom, retryMaxMs = RETRY_MAX_MS, signal } = options;
  const backoff = new Backoff({ initialMs: 50, maxMs: retryMaxMs, jitter: 0.5 }, random);
  let logged = { message: "", at: 0 };
  while (!signal.aborted) {
    try {
      await followOnce(options, () => backoff.reset());
    } catch (error) {
      if (signal.aborted) return;
      options.follower.onInterrupt?.(error);
      const [message, at] = [String(error), clock.monotonic()];
      if (message !== logged.message || at - logged.at >= LOG_AGAIN_MS) {
        log.error("Failed to follow the store; retrying", error, { prefix });
        logged = { message, at };
      }
      await clock.sleep(backoff.next(), signal).catch(() => {});
    }
  }
}

/** Returns when the feed breaks. */
async function followOnce({ feed, prefix, follower, signal }: FollowOptions, onListed: () => void): Promise<void> {
  /** Changes that arrive before the list. */
  let early: WatchEvent[] | undefined = [];
  let listed = 0 as Revision;
  let over = signal.aborted;
  const end = Promise.withResolvers<void>();
  const stop = (): void => {
    over = true;
    end.resolve();
  };
  const change = (event: WatchEvent): void => {
    if (event.type === "put" && event.item.failure !== undefined) {
      subscriber.onBroken(event.item.failure);
      return;
    }
    // The feed may be behind the list.
    if ((event.type === "put" ? event.item.modified : event.revision) > listed) follower.onChange(event);
  };
  const subscriber: Subscriber = {
    onChange: (event) => (early === undefined ? change(event) : void early.push(event)),
    onBroken: (error) => {
      follower.onInterrupt?.(error);
      stop();
    },
  };
  const list = async (since: Revision): Promise<void> => {
    const receiver = follower.startList();
    let revision = 0 as Revision;
    const onPart = (part: ScanPart): void => {
      if (part.revision < since)
        throw new StoreError("unavailable", "Cannot use the list of the store: it is older than the subscription");
      revision = part.revision;
      receiver.add(part.items);
    };
    for await (const part of feed.store.scan(prefixRange(prefix))) {
      if (over) return;
      onPart(part);
    }
    if (over) return;
    listed = revision;
    receiver.complete(revision);
    const queued = early ?? [];
    early = undefined;
    for (const event of queued) change(event);
    onListed();
  };
  signal.addEventListener("abort", stop);
  try {
    const since = await feed.subscribe(prefix, subscriber);
    // Neither the list nor the early changes may be variables of this function, which keeps them until the feed breaks.
    await list(since);
    if (over) return;
    await end.promise;
  } finally {
    signal.removeEventListener("abort", stop);
    feed.unsubscribe(prefix, subscriber);
  }
}
