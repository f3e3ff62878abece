import type { Filter, Peer } from "../../../http/message.ts";
import { isStreamed } from "../../../http/server/write-body.ts";
import type { Clock } from "../../../std/time/clock.ts";

/** Limits the bytes per second that the streamed responses (watches, logs) of a connection share; 0: no limit. */
export function withThrottle(bytesPerSecond: number, clock: Clock): Filter {
  if (bytesPerSecond <= 0) return (next) => next;
  const connections = new WeakMap<Peer, ByteRateLimiter>();
  return (next) => async (request) => {
    const response = await next(request);
    if (!isStreamed(response.body) || response.finite === true) return response;
    let limiter = connections.get(request.peer);
    if (limiter === undefined) {
      limiter = new ByteRateLimiter(bytesPerSecond, clock);
      connections.set(request.peer, limiter);
    }
    return { ...response, body: throttleBody(response.body, limiter, request.signal) };
  };
}

async function* throttleBody(
  body: AsyncIterable<Uint8Array>,
  limiter: ByteRateLimiter,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for await (const buffer of body) {
    for (let offset = 0; offset < buffer.length; offset += limiter.bytesPerSecond) {
      const chunk = buffer.subarray(offset, offset + limiter.bytesPerSecond);
      try {
        await limiter.take(chunk.length, signal);
      } catch {
        // The client disconnected.
        return;
      }
      yield chunk;
    }
  }
}

/** Delays each write until the previous ones fit the rate. */
class ByteRateLimiter {
  readonly bytesPerSecond: number;
  readonly #clock: Clock;
  #freeAt = 0;

  constructor(bytesPerSecond: number, clock: Clock) {
    this.bytesPerSecond = bytesPerSecond;
    this.#clock = clock;
  }

  async take(bytes: number, signal: AbortSignal): Promise<void> {
    const now = this.#clock.monotonic();
    const at = Math.max(now, this.#freeAt);
    this.#freeAt = at + (bytes / this.bytesPerSecond) * 1000;
    if (at > now) await this.#clock.sleep(at - now, signal);
  }
}
