/** Caches the results of token authenticators that are expensive. */

import { ExpiringCache } from "../../../std/collections/expiring-cache.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { BearerToken, TokenAuthenticator, TokenUser } from "./bearer-token.ts";

export interface TokenCacheOptions {
  /** The most frequent audiences; their key is the digest alone. */
  readonly audiences?: readonly string[] | undefined;
  readonly clock: Clock;
  /** How long users, and tokens without a user, are cached. Errors are not cached. */
  readonly successTtlMs: number;
  readonly failureTtlMs: number;
  readonly observe?: TokenCacheObserver | undefined;
}

export interface TokenCacheObserver {
  /** A lookup and its duration: `hit` if the result was cached. */
  lookedUp(result: "hit" | "miss", milliseconds: number): void;
  /** Called before a call of the authenticator; the result is called afterwards. */
  fetchStarted(): () => void;
  fetchEnded(result: "ok" | "error"): void;
}

/** As in Kubernetes. */
const TOKENS_MAX = 4096;
const NO_USER = Symbol("no user");

export function cacheTokens(authenticate: TokenAuthenticator, options: TokenCacheOptions): TokenAuthenticator {
  const { audiences: usualAudiences, clock, successTtlMs, failureTtlMs, observe } = options;
  const results = new ExpiringCache<TokenUser | typeof NO_USER>(TOKENS_MAX, clock);
  /** Concurrent requests with the same token share one call. Bounded by the number of requests in flight. */
  const inFlight = new Map<string, Promise<TokenUser | undefined>>();
  const call = async (
    key: string,
    token: BearerToken,
    requested: readonly string[],
  ): Promise<TokenUser | undefined> => {
    const done = observe?.fetchStarted();
    try {
      const found = await authenticate(token, requested);
      results.set(key, found ?? NO_USER, found === undefined ? failureTtlMs : successTtlMs);
      observe?.fetchEnded("ok");
      return found;
    } catch (error) {
      observe?.fetchEnded("error");
      throw error;
    } finally {
      done?.();
      inFlight.delete(key);
    }
  };
  return (token, audiences) => {
    const start = observe === undefined ? 0 : clock.monotonic();
    const key = audiences === usualAudiences ? token.digest : `${token.digest}${audiences.join("\0")}`;
    const cached = results.get(key);
    if (cached !== undefined) {
      observe?.lookedUp("hit", clock.monotonic() - start);
      return cached === NO_USER ? undefined : cached;
    }
    let answer = inFlight.get(key);
    if (answer === undefined) {
      answer = call(key, token, audiences);
      inFlight.set(key, answer);
    }
    return answer.finally(() => observe?.lookedUp("miss", clock.monotonic() - start));
  };
}
