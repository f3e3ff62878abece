import type { Duplex } from "node:stream";

/** Queued requests of one connection, as many as HTTP/2 streams; one more closes the connection. */
const PIPELINED_MAX = 100;

interface ConnectionQueue {
  last: Promise<void>;
  waiting: number;
}

/**
 * Serves requests that a client pipelines over HTTP/1.1 one after the other, so that the second sees what the first has
 * written (RFC 9112, section 9.3.2). node:http would start all of them at once.
 */
export class Pipeline {
  readonly #queues = new WeakMap<Duplex, ConnectionQueue>();

  /** `serve` must not reject; it is not called when the connection has ended before its turn. */
  add(socket: Duplex, serve: () => Promise<void>): void {
    const line = this.#queues.get(socket);
    if (line === undefined) {
      const alone: ConnectionQueue = { last: Promise.resolve(), waiting: 0 };
      this.#queues.set(socket, alone);
      alone.last = serve().then(() => this.#done(socket, alone));
    } else if (line.waiting >= PIPELINED_MAX) socket.destroy();
    else {
      line.waiting++;
      line.last = line.last.then(async () => {
        line.waiting--;
        if (socket.writable) await serve();
        this.#done(socket, line);
      });
    }
  }

  #done(socket: Duplex, line: ConnectionQueue): void {
    if (line.waiting === 0) this.#queues.delete(socket);
  }
}
