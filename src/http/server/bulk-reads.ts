/**
 * Reads one connection in a turn of the event loop of those that send many requests at once: libuv reads all sockets
 * that have bytes before anything else runs, and a client with ten connections can have a thousand requests there.
 */

/** What node:net and node:tls read a connection with. */
export interface ReadHandle {
  readStart(): unknown;
  readStop(): unknown;
}

/** Requests that a connection sends at once to be read in turns from then on. */
const BULK_REQUESTS = 16;
/** Requests within this time count as sent at once. */
const BURST_MS = 2;
/** How long a connection is read in turns after it has sent many requests at once. */
const BULK_MS = 15_000;

export class BulkConnection {
  readonly handle: ReadHandle | undefined;
  burst = 0;
  burstMs = Number.NEGATIVE_INFINITY;
  untilMs = Number.NEGATIVE_INFINITY;

  constructor(handle: ReadHandle | undefined) {
    this.handle = handle;
  }
}

export class BulkReads {
  /** Those that are read in turns. */
  readonly #connections = new Set<BulkConnection>();
  #stopped: BulkConnection[] = [];
  #isScheduled = false;

  /** Call for each request that is read while connections share the server. */
  record(connection: BulkConnection, nowMs: number): void {
    if (nowMs - connection.burstMs > BURST_MS) {
      connection.burst = 0;
      connection.burstMs = nowMs;
    }
    connection.burst++;
    if (connection.burst >= BULK_REQUESTS) {
      connection.untilMs = nowMs + BULK_MS;
      this.#connections.add(connection);
    }
    if (!this.#isScheduled && this.#connections.has(connection)) this.#stopOthers(connection, nowMs);
  }

  /** The connection is closed. */
  remove(connection: BulkConnection): void {
    this.#connections.delete(connection);
    if (this.#stopped.includes(connection)) this.#stopped = this.#stopped.filter((each) => each !== connection);
  }

  #stopOthers(reading: BulkConnection, nowMs: number): void {
    for (const connection of this.#connections) {
      if (connection.untilMs <= nowMs) this.#connections.delete(connection);
      else if (connection !== reading) {
        connection.handle?.readStop();
        this.#stopped.push(connection);
      }
    }
    if (this.#stopped.length === 0) return;
    this.#isScheduled = true;
    setImmediate(this.#resume);
  }

  readonly #resume = (): void => {
    this.#isScheduled = false;
    const stopped = this.#stopped;
    this.#stopped = [];
    for (const { handle } of stopped) handle?.readStart();
  };
}

/** Undefined when Node has no such handle: the connection is then never stopped. */
export function readHandleOf(socket: { readonly _handle?: unknown }): ReadHandle | undefined {
  // The socket of an HTTP/2 session is a proxy, for which `in` is false.
  const handle = socket._handle;
  if (typeof handle !== "object" || handle === null || !("readStart" in handle) || !("readStop" in handle)) {
    return undefined;
  }
  return typeof handle.readStart === "function" && typeof handle.readStop === "function"
    ? (handle as ReadHandle)
    : undefined;
}
