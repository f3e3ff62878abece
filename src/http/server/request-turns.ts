/**
 * Lets the HTTP/2 connections of a listener take turns: node:http2 announces all streams of what it has read of a
 * connection at once, and a request of another connection would wait until all of them are handled.
 */
import { CROWD, REQUESTS_PER_TURN, REQUESTS_PER_TURN_CROWDED, SHARED_MS } from "../../std/async/turns.ts";
import { Fifo } from "../../std/collections/fifo.ts";
import type { Clock } from "../../std/time/clock.ts";
import { BulkConnection, BulkReads, type ReadHandle } from "./bulk-reads.ts";

/** The waiting requests of one connection: at most as many as it has streams. */
export class ConnectionTurns {
  readonly waiting = new Fifo<() => void>();
  readonly bulk: BulkConnection;
  /** The turn in which a request of the connection started last. */
  lastTurn = -1;

  constructor(handle?: ReadHandle) {
    this.bulk = new BulkConnection(handle);
  }
}

export class RequestTurns {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #reads = new BulkReads();
  #latest: ConnectionTurns | undefined;
  #sharedUntilMs = Number.NEGATIVE_INFINITY;
  #turn = 0;
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
    if (!this.#isShared(connection) && waiting.length === 0) {
      start();
      return;
    }
    if (waiting.length === 0) {
      if (this.#hasTurn(connection)) {
        connection.lastTurn = this.#turn;
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

  /** The connection is closed. */
  remove({ bulk }: ConnectionTurns): void {
    this.#reads.remove(bulk);
  }

  /**
   * The first request of a connection does not wait for the next turn because others have used up the present one. The
   * ten connections of a client with a thousand requests would take ten turns at once.
   */
  #hasTurn({ lastTurn, bulk }: ConnectionTurns): boolean {
    const isFirst = lastTurn !== this.#turn && !this.#reads.has(bulk);
    return this.#started < (isFirst ? REQUESTS_PER_TURN : this.#perTurn());
  }

  #isShared(connection: ConnectionTurns): boolean {
    const now = this.#clock.monotonic();
    if (this.#latest !== connection) {
      if (this.#latest !== undefined) this.#sharedUntilMs = now + SHARED_MS;
      this.#latest = connection;
    }
    const isShared = now < this.#sharedUntilMs;
    if (isShared) this.#reads.record(connection.bulk, connection.waiting.length, now);
    return isShared;
  }

  #perTurn(): number {
    return this.#waiting > CROWD || this.#reads.hasCrowd ? REQUESTS_PER_TURN_CROWDED : REQUESTS_PER_TURN;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#proceed());
  }

  #proceed(): void {
    this.#isScheduled = false;
    this.#turn++;
    this.#started = 0;
    const most = this.#perTurn();
    while (this.#started < most) {
      const connection = this.#newcomers.shift() ?? this.#others.shift();
      if (connection === undefined) return;
      connection.lastTurn = this.#turn;
      this.#started++;
      this.#waiting--;
      const start = connection.waiting.shift();
      if (connection.waiting.length > 0) this.#others.push(connection);
      start?.();
    }
    this.#schedule();
  }
}
