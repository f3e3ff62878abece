/** Retries calls of authentication and authorization webhooks as Kubernetes does. */

import type { RandomSource } from "../../std/crypto/random.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";

/** A failure that may be temporary: no response, a 429 or a 5xx. */
export class RetryableError extends Error {
  override readonly name = "Passing";
}

export interface RetryOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Whether the failure may be temporary; by default whether it is a `RetryableError`. */
  readonly isRetryable?: (error: unknown) => boolean;
  /** Delay before the first retry; each further delay is 1.5 times as long. Default 500, at most 10,000. */
  readonly initialMs?: number;
  readonly maxMs?: number;
  readonly signal?: AbortSignal | undefined;
}

const ATTEMPTS_MAX = 5;

/** Rejects with the error of the last attempt. */
export async function retryWebhook<T>(call: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, random, isRetryable = (error) => error instanceof RetryableError, signal } = options;
  const { initialMs = 500, maxMs = 10_000 } = options;
  const backoff = new Backoff({ initialMs, maxMs, factor: 1.5, jitter: 0.2 }, random);
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !isRetryable(error)) throw error;
    }
    await clock.sleep(backoff.next(), signal);
  }
}
