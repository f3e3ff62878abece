/** A connection that switched protocols, as a stream for both directions. */
import { Duplex, PassThrough, Readable } from "node:stream";

export class SwitchedSocket extends Duplex {
  /** The body of the response that switches protocols. */
  readonly sent = new PassThrough();
  readonly #received: Readable;

  /** `received`: the body of the request. */
  constructor(received: AsyncIterable<Uint8Array>) {
    super();
    this.#received = Readable.from(received, { objectMode: false });
    this.#received.on("data", (chunk: Uint8Array) => {
      if (!this.push(chunk)) this.#received.pause();
    });
    this.#received.once("end", () => this.push(null));
    this.#received.once("error", (error) => this.destroy(error));
    this.sent.once("error", (error) => this.destroy(error));
    this.sent.once("close", () => this.destroy());
  }

  override _read(): void {
    this.#received.resume();
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void): void {
    if (this.sent.write(chunk)) done();
    else this.sent.once("drain", done);
  }

  override _final(done: () => void): void {
    this.sent.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#received.destroy();
    // What was sent before the end is still read.
    if (error !== null || !this.sent.writableEnded) this.sent.destroy();
    done(error);
  }
}
