/** Remembers for a while whose tokens are: for those that are dear to look into. */
import type { Clock } from "../../../std/time/clock.ts";
import { ExpiringCache } from "../../../std/collections/expiring-cache.ts";
import type { BearerToken, Identified, TokenAuthenticator } from "./bearer-token.ts";

export interface TokenCacheOptions {
  /** Mostly asked for. */
  readonly audiences?: readonly string[] | undefined;
  readonly clock: Clock;
  /** How long a user is remembered, and that there is none. Refusals are not remembered. */
  readonly knownMs: number;
  readonly unknownMs: number;
  readonly observe?: TokenCacheObserver | undefined;
}

export interface TokenCacheObserver {
  /** A token was looked up, and how long that took: `hit` where it was remembered. */
  asked(result: "hit" | "miss", milliseconds: number): void;
  /** Those who do not remember it are being asked, and have answered. */
  fetching(): () => void;
  fetched(result: "ok" | "error"): void;
}

/** As many as Kubernetes remembers in each of its parts. */
const TOKENS_MAX = 4096;
const NOBODY = Symbol("nobody");

export function cachedTokens(authenticate: TokenAuthenticator, options: TokenCacheOptions): TokenAuthenticator {
  const { audiences: own, clock, knownMs, unknownMs, observe } = options;
  const answers = new ExpiringCache<Identified | typeof NOBODY>(TOKENS_MAX, clock);
  /** Who sends the same token meanwhile waits for the same answer. At most as many as requests are in flight. */
  const asking = new Map<string, Promise<Identified | undefined>>();
  const ask = async (key: string, token: BearerToken, asked: readonly string[]): Promise<Identified | undefined> => {
    const done = observe?.fetching();
    try {
      const found = await authenticate(token, asked);
      answers.set(key, found ?? NOBODY, found === undefined ? unknownMs : knownMs);
      observe?.fetched("ok");
      return found;
    } catch (error) {
      observe?.fetched("error");
      throw error;
    } finally {
      done?.();
      asking.delete(key);
    }
  };
  return (token, audiences) => {
    const began = observe === undefined ? 0 : clock.monotonic();
    const key = audiences === own ? token.digest : `${token.digest}${audiences.join("\0")}`;
    const known = answers.get(key);
    if (known !== undefined) {
      observe?.asked("hit", clock.monotonic() - began);
      return known === NOBODY ? undefined : known;
    }
    let answer = asking.get(key);
    if (answer === undefined) {
      answer = ask(key, token, audiences);
      asking.set(key, answer);
    }
    return answer.finally(() => observe?.asked("miss", clock.monotonic() - began));
  };
}
