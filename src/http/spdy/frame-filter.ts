/** Checks the frames of a connection that another program reads, and lets no part of an invalid one pass. */
import { CONTROL_BYTES_MAX, FrameReader, HEAD_BYTES, SpdyError } from "./frames.ts";
import { HeaderDecoder } from "./header-block.ts";

const empty = Buffer.alloc(0);

/**
 * For readers that trust the counts in frames, as moby/spdystream does: a SETTINGS frame or a header block that claims
 * 2^32 - 1 entries makes it allocate memory for them, which ends containerd.
 */
export class FrameFilter implements Disposable {
  readonly #reader = new FrameReader();
  readonly #decoder = new HeaderDecoder();
  /** The beginning of a control frame, or of the head of a frame; at most one frame. */
  #pending: Buffer = empty;
  /** Bytes of a data frame that have not arrived. */
  #dataLeft = 0;

  /**
   * Returns the bytes that may pass, with those that were held back before. Throws or rejects with a `SpdyError` for an
   * invalid frame; the filter is unusable then. One chunk at a time.
   */
  take(chunk: Uint8Array): Buffer | Promise<Buffer> {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    const all = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    this.#pending = empty;
    return this.#check(all, 0);
  }

  [Symbol.dispose](): void {
    this.#decoder[Symbol.dispose]();
  }

  #check(bytes: Buffer, start: number): Buffer | Promise<Buffer> {
    let at = start;
    for (;;) {
      const data = Math.min(this.#dataLeft, bytes.length - at);
      this.#dataLeft -= data;
      at += data;
      if (at === bytes.length) return bytes;
      if (bytes.length - at < HEAD_BYTES) return this.#holdBack(bytes, at);
      const length = bytes.readUIntBE(at + 5, 3);
      const isData = bytes[at]! < 0x80;
      if (isData && bytes.readUInt32BE(at) === 0) throw new SpdyError("a data frame has stream 0");
      if (!isData && length > CONTROL_BYTES_MAX) throw new SpdyError(`a control frame has ${length} bytes`);
      if (isData) {
        this.#dataLeft = length;
        at += HEAD_BYTES;
        continue;
      }
      const end = at + HEAD_BYTES + length;
      if (end > bytes.length) return this.#holdBack(bytes, at);
      for (const frame of this.#reader.read(bytes.subarray(at, end))) {
        if ("headerBlock" in frame) {
          return this.#decoder.decode(frame.headerBlock).then(() => this.#check(bytes, end));
        }
      }
      at = end;
    }
  }

  #holdBack(bytes: Buffer, at: number): Buffer {
    // A part would keep the memory of the chunk.
    this.#pending = Buffer.from(bytes.subarray(at));
    return bytes.subarray(0, at);
  }
}
