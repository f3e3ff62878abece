import type { Filter, Peer } from "../../http/message.ts";
import { isStreamed } from "../../http/server/write-body.ts";
import type { Clock } from "../../std/time/clock.ts";

/** Holds what a connection's long-running requests (watches, logs) are sent to so many bytes a second; 0: no limit. */
export function throttle(bytesPerSecond: number, clock: Clock): Filter {
  if (bytesPerSecond <= 0) return (next) => next;
  const connections = new WeakMap<Peer, Allowance>();
  return (next) => async (request) => {
    const response = await next(request);
    if (!isStreamed(response.body)) return response;
    let allowance = connections.get(request.peer);
    if (allowance === undefined) {
      allowance = new Allowance(bytesPerSecond, clock);
      connections.set(request.peer, allowance);
    }
    return { ...response, body: paced(response.body, allowance, request.signal) };
  };
}

async function* paced(
  body: AsyncIterable<Uint8Array>,
  allowance: Allowance,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for await (const piece of body) {
    for (let at = 0; at < piece.length; at += allowance.bytesPerSecond) {
      const part = piece.subarray(at, at + allowance.bytesPerSecond);
      try {
        await allowance.take(part.length, signal);
      } catch {
        // The client went away while it had to wait.
        return;
      }
      yield part;
    }
  }
}

/** What is taken delays what is taken next. */
class Allowance {
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
