/**
 * Lets the HTTP/2 connections of a listener take turns: node:http2 announces all streams of what it has read of a
 * connection at once, and a request of another connection would wait until all of them are handled.
 */
import { CROWD, REQUESTS_PER_TURN, REQUESTS_PER_TURN_CROWDED, SHARED_MS } from "../../std/async/turns.ts";
import { Fifo } from "../../std/collections/fifo.ts";
import type { Clock } from "../../std/time/clock.ts";

/** The waiting requests of one connection: at most as many as it has streams. */
export class ConnectionTurns {
  readonly waiting = new Fifo<() => void>();
}

export class RequestTurns {
  readonly #clock: Pick<Clock, "monotonic">;
  #latest: ConnectionTurns | undefined;
  #sharedUntilMs = Number.NEGATIVE_INFINITY;
  /** Requests started since the last turn that was scheduled. */
  #started = 0;
  #waiting = 0;
  #isScheduled = false;
  /** Connections with a waiting request: those that had none come first, as in the scheduler fq_codel (RFC 8290). */
  readonly #newcomers = new Fifo<ConnectionTurns>();
  readonly #others = new Fifo<ConnectionTurns>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Starts a request at once, or in its turn; those of one connection in their order. */
  take(connection: ConnectionTurns, start: () => void): void {
    const { waiting } = connection;
    if (waiting.length === 0) {
      if (!this.#isShared(connection)) {
        start();
        return;
      }
      if (this.#started < this.#perTurn()) {
        this.#started++;
        if (this.#started >= this.#perTurn()) this.#schedule();
        start();
        return;
      }
      this.#newcomers.push(connection);
    }
    waiting.push(start);
    this.#waiting++;
    this.#schedule();
  }

  #isShared(connection: ConnectionTurns): boolean {
    const now = this.#clock.monotonic();
    if (this.#latest !== connection) {
      if (this.#latest !== undefined) this.#sharedUntilMs = now + SHARED_MS;
      this.#latest = connection;
    }
    return now < this.#sharedUntilMs;
  }

  #perTurn(): number {
    return this.#waiting > CROWD ? REQUESTS_PER_TURN_CROWDED : REQUESTS_PER_TURN;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#proceed());
  }

  #proceed(): void {
    this.#isScheduled = false;
    this.#started = 0;
    const most = this.#perTurn();
    while (this.#started < most) {
      const connection = this.#newcomers.shift() ?? this.#others.shift();
      if (connection === undefined) return;
      this.#started++;
      this.#waiting--;
      const start = connection.waiting.shift();
      if (connection.waiting.length > 0) this.#others.push(connection);
      start?.();
    }
    this.#schedule();
  }
}
