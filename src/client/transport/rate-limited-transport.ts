/** Limits the rate of requests to the API server: requests beyond it wait. */

import type { HttpRequest } from "../../http/message.ts";
import type { Clock } from "../../std/time/clock.ts";
import { TokenBucket } from "../../std/time/token-bucket.ts";
import type { Transport } from "../client.ts";

export interface RateLimitedTransportOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  /** Requests a second, on average. */
  readonly qps: number;
  /** Requests at once after an idle time. */
  readonly burst: number;
  /** Rejects waiting requests. */
  readonly signal: AbortSignal;
  /** Called with the delay of each request that the limit applies to. */
  readonly onDelay?: ((method: string, milliseconds: number) => void) | undefined;
}

/** Events have a limit of their own; heartbeats are exempt, since a node without them becomes NotReady. */
export function createRateLimitedTransport({
  transport,
  clock,
  qps,
  burst,
  signal,
  onDelay,
}: RateLimitedTransportOptions): Transport {
  const bucket = new TokenBucket(clock, qps, burst);
  return async (request) => {
    if (isExempt(request)) return await transport(request);
    const began = clock.monotonic();
    while (!bucket.take()) {
      await clock.sleep(bucket.waitMs, AbortSignal.any([signal, request.signal]));
    }
    onDelay?.(request.method, clock.monotonic() - began);
    return await transport(request);
  };
}

function isExempt({ path }: HttpRequest): boolean {
  return /\/(events|leases)(\/|$)/.test(path) || /^\/api\/v1\/nodes\/[^/]+\/status$/.test(path);
}
