/** Writes CBOR items (RFC 8949), each in its shortest encoding. */
import { Buffer } from "node:buffer";

const BASE64_LATER = 22;

export class CborWriter {
  #bytes = Buffer.allocUnsafe(256);
  #length = 0;

  take(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  /** Reserves `size` bytes and returns their offset. */
  #reserve(size: number): number {
    if (this.#length + size > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + size));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    this.#length += size;
    return this.#length - size;
  }

  raw(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.length);
    this.#bytes.set(bytes, at);
  }

  #head(type: number, argument: number | bigint): void {
    const start = type << 5;
    if (argument < 24) {
      const at = this.#reserve(1);
      this.#bytes[at] = start | Number(argument);
    } else if (argument <= 0xff) {
      const at = this.#reserve(2);
      this.#bytes[at] = start | 24;
      this.#bytes[at + 1] = Number(argument);
    } else if (argument <= 0xffff) {
      const at = this.#reserve(3);
      this.#bytes[at] = start | 25;
      this.#bytes.writeUInt16BE(Number(argument), at + 1);
    } else if (argument <= 0xffff_ffff) {
      const at = this.#reserve(5);
      this.#bytes[at] = start | 26;
      this.#bytes.writeUInt32BE(Number(argument), at + 1);
    } else {
      const at = this.#reserve(9);
      this.#bytes[at] = start | 27;
      this.#bytes.writeBigUInt64BE(BigInt(argument), at + 1);
    }
  }

  integer(value: number | bigint): void {
    if (value >= 0) this.#head(0, value);
    else this.#head(1, -1n - BigInt(value));
  }

  /** Text as a byte string, as Kubernetes writes it, since Go strings need not be UTF-8. */
  text(value: string): void {
    const size = Buffer.byteLength(value, "utf8");
    this.#head(2, size);
    const at = this.#reserve(size);
    this.#bytes.write(value, at, size, "utf8");
  }

  /** Bytes with the tag that converts them to base64 in JSON. */
  bytes(value: Uint8Array): void {
    this.#head(6, BASE64_LATER);
    this.#head(2, value.length);
    this.raw(value);
  }

  base64(text: string): void {
    this.bytes(Buffer.from(text, "base64"));
  }

  list(length: number): void {
    this.#head(4, length);
  }

  map(size: number): void {
    this.#head(5, size);
  }

  simple(value: boolean | null): void {
    const at = this.#reserve(1);
    this.#bytes[at] = value === null ? 0xf6 : value ? 0xf5 : 0xf4;
  }

  /** A float in the shortest encoding that preserves the value. */
  real(value: number): void {
    const small = halfBits(value);
    if (small !== undefined) {
      const at = this.#reserve(3);
      this.#bytes[at] = 0xf9;
      this.#bytes.writeUInt16BE(small, at + 1);
    } else if (Math.fround(value) === value) {
      const at = this.#reserve(5);
      this.#bytes[at] = 0xfa;
      this.#bytes.writeFloatBE(value, at + 1);
    } else {
      const at = this.#reserve(9);
      this.#bytes[at] = 0xfb;
      this.#bytes.writeDoubleBE(value, at + 1);
    }
  }
}

/** The half-precision encoding of `value`; undefined when it is not exact. */
function halfBits(value: number): number | undefined {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size === 0) return sign;
  const exponent = Math.floor(Math.log2(size));
  if (exponent > 15) return undefined;
  const scale = Math.max(exponent, -14);
  const fraction = size / 2 ** (scale - 10);
  // Below 2^-14 the number is subnormal: no leading one, exponent zero.
  if (!Number.isInteger(fraction)) return undefined;
  return sign | (exponent < -14 ? fraction : ((exponent + 15) << 10) | (fraction & 0x3ff));
}
