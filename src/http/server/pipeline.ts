import type { Duplex } from "node:stream";

/** Requests that wait on one connection; more are an attack, and the end of it. As many as streams of HTTP/2. */
const PIPELINED_MAX = 100;

interface ConnectionQueue {
  last: Promise<void>;
  waiting: number;
}

/**
 * Requests that a client sends over HTTP/1.1 before the first is answered are served one after the other: only so does
 * the second see what the first has written (RFC 9112, section 9.3.2). node:http would begin with all of them at once.
 */
export class Pipeline {
  readonly #queues = new WeakMap<Duplex, ConnectionQueue>();

  /** `serve` does not reject, and does not begin when the connection has ended before its turn. */
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
