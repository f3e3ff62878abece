import type { Duplex } from "node:stream";

/** Requests that wait on one connection; more are an attack, and the end of it. As many as streams of HTTP/2. */
const WAITING_MAX = 100;

interface Line {
  last: Promise<void>;
  waiting: number;
}

/**
 * Requests that a client sends over HTTP/1.1 before the first is answered are served one after the other: only so does
 * the second see what the first has written (RFC 9112, section 9.3.2). node:http would begin with all of them at once.
 */
export class Pipeline {
  readonly #lines = new WeakMap<Duplex, Line>();

  /** `serve` does not reject, and does not begin when the connection has ended before its turn. */
  add(socket: Duplex, serve: () => Promise<void>): void {
    const line = this.#lines.get(socket);
    if (line === undefined) {
      const alone: Line = { last: Promise.resolve(), waiting: 0 };
      this.#lines.set(socket, alone);
      alone.last = serve().then(() => this.#done(socket, alone));
    } else if (line.waiting >= WAITING_MAX) socket.destroy();
    else {
      line.waiting++;
      line.last = line.last.then(async () => {
        line.waiting--;
        if (socket.writable) await serve();
        this.#done(socket, line);
      });
    }
  }

  #done(socket: Duplex, line: Line): void {
    if (line.waiting === 0) this.#lines.delete(socket);
  }
}
