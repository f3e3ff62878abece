/** Spares the API server: requests beyond a rate wait for their turn. */
import type { Transport } from "../../client/client.ts";
import type { HttpRequest } from "../../http/message.ts";
import type { Clock } from "../../std/time/clock.ts";
import { TokenBucket } from "../../std/time/token-bucket.ts";

export interface RateLimitedTransportOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  /** Requests a second, on average. */
  readonly qps: number;
  /** How many may go at once after a quiet time. */
  readonly burst: number;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
}

/** Events have a limit of their own, and a node whose heartbeat waited would be given up for dead. */
export function createRateLimitedTransport({
  transport,
  clock,
  qps,
  burst,
  signal,
}: RateLimitedTransportOptions): Transport {
  const bucket = new TokenBucket(clock, qps, burst);
  return async (request) => {
    while (!isExempt(request) && !bucket.take()) {
      await clock.sleep(bucket.waitMs, AbortSignal.any([signal, request.signal]));
    }
    return await transport(request);
  };
}

function isExempt({ path }: HttpRequest): boolean {
  return /\/(events|leases)(\/|$)/.test(path) || /^\/api\/v1\/nodes\/[^/]+\/status$/.test(path);
}
