/** Requests of HTTP/1.1 whose bodies take memory for their bytes, not for their chunks. */
import { IncomingMessage } from "node:http";
import { ByteChunks } from "../../std/collections/byte-chunks.ts";

/** Larger chunks are not joined. */
const SMALL_BYTES = 1024;
/** The connection is not read further before the reader has taken them: a turn would parse hundreds of thousands. */
const HELD_MAX = 1024;

/**
 * Joins the chunks that arrive before the reader wants more. node:http limits only the bytes of a body that waits for
 * its reader: 64 KiB in chunks of one byte would take 13 MiB, and each chunk an event.
 */
export class JoinedMessage extends IncomingMessage {
  #held = new ByteChunks();
  #heldCount = 0;
  /** The reader waits for the next chunk. */
  #isWanted = false;

  /** Called by the parser with each chunk, and null at the end. Whether it may go on. */
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null || chunk.length >= SMALL_BYTES || this.#isWanted) {
      this.#release();
      this.#isWanted = false;
      return super.push(chunk, encoding);
    }
    this.#held.add(chunk);
    this.#heldCount++;
    const length = this.#held.length + this.readableLength;
    return this.#heldCount < HELD_MAX && length < this.readableHighWaterMark;
  }

  override _read(size: number): void {
    this.#isWanted = !this.#release();
    super._read(size);
  }

  /** Whether there were any. */
  #release(): boolean {
    if (this.#held.length === 0) return false;
    const held = this.#held.concat();
    this.#held = new ByteChunks();
    this.#heldCount = 0;
    super.push(held);
    return true;
  }
}
