/** Bounds the memory that requests with large bodies take while they are handled. */
import { StatusError } from "../../api/status.ts";
import type { HttpRequest } from "../../http/message.ts";
import type { Clock } from "../../std/time/clock.ts";

export interface RequestMemoryOptions {
  readonly clock: Clock;
  /** Bytes of bodies that are handled at the same time. One request may have more when it is alone. */
  readonly bytes: number;
}

/** Smaller bodies are not counted: `--max-mutating-requests-inflight` bounds their number. */
export const COUNTED_BYTES_MIN = 32 * 1024;
/** How long a request waits for its turn. */
const WAIT_MS = 10_000;
/** Bytes of bodies that wait, as a multiple of those that are handled. */
const WAITING_MAX = 8;

interface Waiting {
  readonly bytes: number;
  readonly start: () => void;
}

/** The bytes that a request has reserved. */
class Reservation {
  readonly memory: RequestMemory;
  bytes = 0;

  constructor(memory: RequestMemory) {
    this.memory = memory;
  }
}

const reservations = new WeakMap<HttpRequest, Reservation>();

/**
 * A decoded body takes many times its bytes of the heap, and requests overlap. Large ones take turns, in order of
 * arrival; one that waits too long, or for which the queue has no capacity, gets 429.
 */
export class RequestMemory {
  readonly #options: RequestMemoryOptions;
  #used = 0;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;

  constructor(options: RequestMemoryOptions) {
    this.#options = options;
  }

  /** Calls the handler, during which `reserveMemory` counts; returns the memory afterwards. */
  async run<R>(request: HttpRequest, handle: () => Promise<R>): Promise<R> {
    const reservation = new Reservation(this);
    reservations.set(request, reservation);
    try {
      return await handle();
    } finally {
      reservations.delete(request);
      this.#used -= reservation.bytes;
      this.#startNext();
    }
  }

  async take(bytes: number): Promise<void> {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#used += bytes;
      return;
    }
    if (this.#waitingBytes + bytes > WAITING_MAX * this.#options.bytes) throw tooManyLargeRequests();
    const turn = Promise.withResolvers<void>();
    const waiting: Waiting = { bytes, start: () => turn.resolve() };
    const timer = this.#options.clock.timer(WAIT_MS, () => {
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
      this.#waitingBytes -= bytes;
      turn.reject(tooManyLargeRequests());
    });
    this.#waiting.push(waiting);
    this.#waitingBytes += bytes;
    try {
      await turn.promise;
    } finally {
      timer.cancel();
    }
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || this.#used + bytes <= this.#options.bytes;
  }

  #startNext(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#waitingBytes -= next.bytes;
      this.#used += next.bytes;
      next.start();
    }
  }
}

/** Waits until a body of this size may be handled, where `RequestMemory` handles the request. Throws a 429. */
export async function reserveMemory(request: HttpRequest, bytes: number): Promise<void> {
  const reservation = reservations.get(request);
  if (reservation === undefined || bytes < COUNTED_BYTES_MIN) return;
  await reservation.memory.take(bytes);
  reservation.bytes += bytes;
}

function tooManyLargeRequests(): StatusError {
  return new StatusError(429, "TooManyRequests", "too many large requests are being handled, please try again later", {
    details: { retryAfterSeconds: 1 },
  });
}
