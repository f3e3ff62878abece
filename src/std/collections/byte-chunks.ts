/** The chunks of a body that is collected in memory. */
import { Buffer } from "node:buffer";

/** Shorter chunks are copied: each takes 200 bytes, and keeps the memory of the read that it was cut from. */
const SMALL_BYTES = 1024;
/** Most bodies have few chunks, which are not copied. */
const UNCOPIED_MAX = 8;
const BLOCK_BYTES = 16 * 1024;

/** Takes memory in proportion to the bytes, however short the chunks are. The owner bounds the length. */
export class ByteChunks {
  readonly #chunks: Uint8Array[] = [];
  #small = 0;
  #length = 0;
  /** Small chunks are copied to it from `#start` on, of which `#used` bytes are not in `#chunks`. */
  #block: Buffer | undefined;
  #start = 0;
  #used = 0;

  get length(): number {
    return this.#length;
  }

  add(chunk: Uint8Array): void {
    this.#length += chunk.length;
    if (chunk.length >= SMALL_BYTES || ++this.#small <= UNCOPIED_MAX) {
      this.#closePart();
      this.#chunks.push(chunk);
      return;
    }
    if (this.#block === undefined || this.#start + this.#used + chunk.length > this.#block.length) {
      this.#closePart();
      this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#start = 0;
    }
    this.#block.set(chunk, this.#start + this.#used);
    this.#used += chunk.length;
  }

  /** All bytes; a view of the only chunk. */
  concat(): Buffer {
    this.#closePart();
    const [only] = this.#chunks;
    return only !== undefined && this.#chunks.length === 1
      ? Buffer.from(only.buffer, only.byteOffset, only.length)
      : Buffer.concat(this.#chunks, this.#length);
  }

  #closePart(): void {
    if (this.#block === undefined || this.#used === 0) return;
    this.#chunks.push(this.#block.subarray(this.#start, this.#start + this.#used));
    this.#start += this.#used;
    this.#used = 0;
  }
}
