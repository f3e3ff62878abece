/** The integers and strings of LevelDB's files: varints of seven bits per byte, low bits first. */
export class Decoder {
  readonly #bytes: Buffer;
  #offset: number;

  constructor(bytes: Buffer, offset = 0) {
    this.#bytes = bytes;
    this.#offset = offset;
  }

  get offset(): number {
    return this.#offset;
  }

  get done(): boolean {
    return this.#offset >= this.#bytes.length;
  }

  byte(): number {
    const byte = this.#bytes[this.#offset++];
    if (byte === undefined) throw new RangeError("the data end early");
    return byte;
  }

  /** Up to 2^53, which no number of a file and no sequence number reaches. */
  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      if (scale > 2 ** 49) throw new RangeError("a number is too long");
    }
  }

  bytes(length: number): Buffer {
    const end = this.#offset + length;
    if (end > this.#bytes.length) throw new RangeError("the data end early");
    const taken = this.#bytes.subarray(this.#offset, end);
    this.#offset = end;
    return taken;
  }

  /** Bytes after their length. */
  slice(): Buffer {
    return this.bytes(this.varint());
  }

  fixed64(): number {
    return Number(this.bytes(8).readBigUInt64LE());
  }
}
