/**
 * Reads one connection in a turn of the event loop of those that send many requests at once: libuv reads all sockets
 * that have bytes before anything else runs, and a client with ten connections can have a thousand requests there.
 */
import { CROWD } from "../../std/async/turns.ts";

/** What node:net and node:tls read a connection with. */
export interface ReadHandle {
  readStart(): unknown;
  readStop(): unknown;
}

/** Requests of one connection that wait for their turn: it has sent them at once, and is read in turns from then on. */
const BULK_REQUESTS = 16;
/** How long a connection is read in turns after it has sent many requests at once. */
const BULK_MS = 5000;

export class BulkConnection {
  readonly handle: ReadHandle | undefined;
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
  #hasCrowd = false;

  /** So many connections were stopped in this turn or the one before that a crowd of requests waits in sockets. */
  get hasCrowd(): boolean {
    return this.#hasCrowd;
  }

  /** Call for each request that is read while connections share the server. `waiting`: requests before it. */
  record(connection: BulkConnection, waiting: number, nowMs: number): void {
    if (waiting >= BULK_REQUESTS) {
      connection.untilMs = nowMs + BULK_MS;
      this.#connections.add(connection);
    }
    if (this.#stopped.length === 0 && this.#connections.has(connection)) this.#stopOthers(connection, nowMs);
  }

  /** Whether the connection has sent many requests at once lately. */
  has(connection: BulkConnection): boolean {
    return this.#connections.has(connection);
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
    this.#hasCrowd = isCrowd(this.#stopped);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#isScheduled = false;
    const stopped = this.#stopped;
    this.#stopped = [];
    this.#hasCrowd = isCrowd(stopped);
    if (this.#hasCrowd) this.#schedule();
    for (const { handle } of stopped) handle?.readStart();
  };
}

function isCrowd(stopped: readonly BulkConnection[]): boolean {
  return stopped.length * BULK_REQUESTS >= CROWD;
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
