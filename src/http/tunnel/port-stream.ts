/** A connection between two threads of the process, over a message port. */
import { Duplex } from "node:stream";
import type { MessagePort } from "node:worker_threads";
import { toUnpooledBuffer } from "../../std/memory/unpooled-buffer.ts";

/** Bytes that the sender may be ahead of the reader. */
const WINDOW_BYTES = 512 * 1024;
/** The reader reports what it has taken when it is so much. */
const REPORT_BYTES = WINDOW_BYTES / 4;

type PortMessage =
  | { readonly data: Uint8Array }
  /** The reader has taken so many bytes. */
  | { readonly taken: number }
  | { readonly end: true };

/** Owns its end of the port. Each side may end while it still reads. */
export class PortStream extends Duplex {
  readonly #port: MessagePort;
  /** Bytes that the other side has not taken. */
  #ahead = 0;
  #taken = 0;
  #isEnded = false;
  #continue: (() => void) | undefined;

  constructor(port: MessagePort) {
    super();
    this.#port = port;
    port.on("message", (message: PortMessage) => this.#receive(message));
    port.once("close", () => {
      if (!this.#isEnded) this.destroy(new Error("the other thread closed the connection"));
      // What was sent before the end is still read; what this side writes is discarded.
      else if (this.readableEnded) this.destroy();
      else this.once("end", () => this.destroy());
    });
  }

  #receive(message: PortMessage): void {
    if ("data" in message) {
      this.#taken += message.data.length;
      const { buffer, byteOffset, byteLength } = message.data;
      if (this.push(Buffer.from(buffer, byteOffset, byteLength))) this.#report();
    } else if ("taken" in message) {
      this.#ahead -= message.taken;
      if (this.#ahead >= WINDOW_BYTES) return;
      const resume = this.#continue;
      this.#continue = undefined;
      resume?.();
    } else {
      this.#isEnded = true;
      this.push(null);
    }
  }

  #report(): void {
    if (this.#taken < REPORT_BYTES) return;
    this.#port.postMessage({ taken: this.#taken } satisfies PortMessage);
    this.#taken = 0;
  }

  override _read(): void {
    this.#report();
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void): void {
    this.#port.postMessage({ data: toUnpooledBuffer(chunk) } satisfies PortMessage);
    this.#ahead += chunk.length;
    if (this.#ahead < WINDOW_BYTES) done();
    else this.#continue = done;
  }

  override _final(done: () => void): void {
    this.#port.postMessage({ end: true } satisfies PortMessage);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#port.close();
    done(error);
  }
}
