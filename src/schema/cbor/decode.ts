/**
 * Decodes CBOR (RFC 8949) into JSON values. Accepts every well-formed encoding of a value; rejects what JSON cannot
 * represent.
 */
import { Buffer } from "node:buffer";
import { TooManyValuesError } from "../value/limits.ts";
import { setMember } from "../value/plain-object.ts";
import { formatInstant, parseInstant } from "../value/time.ts";
import { CborError } from "./error.ts";

/** Kubernetes' limit. */
export const cborDepthMax = 64;

/**
 * Decodes one JSON value. The self-described tag is optional. Throws a `CborError` when the bytes are not well-formed,
 * contain duplicate members, invalid UTF-8 or a value that JSON cannot represent, nest too deeply, or continue after
 * the value. Throws a `TooManyValuesError` for more than `max` values.
 */
export function decodeCbor(bytes: Uint8Array, max = Number.POSITIVE_INFINITY): unknown {
  const reader = new CborReader(bytes, max);
  const value = reader.value(0);
  reader.end();
  return value;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const BREAK = 0xff;
const INDEFINITE = 31;
/** Tags for the text encoding of byte strings in JSON (RFC 8949, 3.4.5.2). */
const laterEncodings: ReadonlyMap<number, BufferEncoding> = new Map([
  [21, "base64url"],
  [22, "base64"],
  [23, "hex"],
] as const);

class CborReader {
  readonly #bytes: Buffer;
  readonly #max: number;
  #at = 0;
  #values = 0;
  /** The encoding that the tags around the current value set for byte strings in it. */
  #encoding: BufferEncoding | undefined;

  constructor(bytes: Uint8Array, max: number) {
    this.#max = max;
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  end(): void {
    if (this.#at < this.#bytes.length) throw new CborError(`${this.#bytes.length - this.#at} bytes after the value`);
  }

  value(depth: number): unknown {
    if (depth > cborDepthMax) throw new CborError(`nested deeper than ${cborDepthMax} levels`);
    this.#countValue();
    const start = this.#at;
    const head = this.#byte();
    const information = head & 0x1f;
    switch (head >> 5) {
      case 0:
        return this.#integer(information, false);
      case 1:
        return this.#integer(information, true);
      case 2:
        return this.#byteString(information);
      case 3:
        return this.#text(this.#chunks(3, information));
      case 4:
        return this.#list(information, depth);
      case 5:
        return this.#map(information, depth);
      case 6:
        return this.#tagged(this.#count(information), depth);
      default:
        return this.#simple(information, start);
    }
  }

  #countValue(): void {
    if (++this.#values > this.#max) throw new TooManyValuesError(this.#max);
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new CborError("unexpected end");
    this.#at++;
    return byte;
  }

  #take(size: number): Buffer {
    if (size > this.#bytes.length - this.#at) throw new CborError("unexpected end");
    this.#at += size;
    return this.#bytes.subarray(this.#at - size, this.#at);
  }

  /** The argument of an initial byte (RFC 8949, 3). */
  #argument(information: number): bigint {
    if (information < 24) return BigInt(information);
    if (information > 27) throw new CborError(`additional information ${information} is not defined here`);
    const argument = this.#take(2 ** (information - 24));
    return BigInt(`0x${argument.toString("hex")}`);
  }

  /** An argument that is a length or a tag number. */
  #count(information: number): number {
    return Number(this.#argument(information));
  }

  #integer(information: number, negative: boolean): number {
    const argument = this.#argument(information);
    if (argument > 0x7fff_ffff_ffff_ffffn) throw new CborError("an integer does not fit into 64 bits");
    return Number(negative ? -1n - argument : argument);
  }

  #byteString(information: number): string {
    const bytes = this.#chunks(2, information);
    return this.#encoding === undefined ? this.#text(bytes) : bytes.toString(this.#encoding);
  }

  #text(bytes: Buffer): string {
    try {
      return utf8.decode(bytes);
    } catch (cause) {
      throw new CborError("text is not valid UTF-8", { cause });
    }
  }

  /** A string of definite length, or the chunks of an indefinite-length string. */
  #chunks(type: number, information: number): Buffer {
    if (information !== INDEFINITE) return this.#take(this.#count(information));
    const chunks: Buffer[] = [];
    for (let head = this.#byte(); head !== BREAK; head = this.#byte()) {
      this.#countValue();
      if (head >> 5 !== type) throw new CborError("a chunk of a string has another type");
      const chunk = this.#take(this.#count(head & 0x1f));
      // A character must not span two chunks.
      if (type === 3) this.#text(chunk);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }

  #list(information: number, depth: number): unknown[] {
    const items: unknown[] = [];
    this.#each(information, () => items.push(this.value(depth + 1)));
    return items;
  }

  #map(information: number, depth: number): Record<string, unknown> {
    const members: Record<string, unknown> = {};
    this.#each(information, () => {
      const name = this.#name(depth);
      if (Object.hasOwn(members, name)) throw new CborError(`duplicate member ${JSON.stringify(name)}`);
      setMember(members, name, this.value(depth + 1));
    });
    return members;
  }

  /** The encoding tags around a map apply to its values, not to its names. */
  #name(depth: number): string {
    const encoding = this.#encoding;
    this.#encoding = undefined;
    const name = this.value(depth + 1);
    this.#values--;
    this.#encoding = encoding;
    if (typeof name !== "string") throw new CborError("the name of a member is not a string");
    return name;
  }

  #each(information: number, read: () => void): void {
    if (information === INDEFINITE) {
      for (; this.#bytes[this.#at] !== BREAK; read());
      this.#at++;
      return;
    }
    const count = this.#count(information);
    // Each item takes at least one byte, so that a larger count is truncated input.
    if (count > this.#bytes.length - this.#at) throw new CborError("unexpected end");
    for (let index = 0; index < count; index++) read();
  }

  #tagged(tag: number, depth: number): unknown {
    if (tag === 2 || tag === 3) throw new CborError("bignums are not supported");
    const around = this.#encoding;
    this.#encoding = laterEncodings.get(tag) ?? around;
    const content = this.value(depth + 1);
    this.#encoding = around;
    if (tag === 0) return this.#time(typeof content === "string" ? content : "");
    return tag === 1 ? this.#epoch(content) : content;
  }

  #time(text: string): string {
    if (parseInstant(text) === undefined) throw new CborError(`${JSON.stringify(text)} is not a time`);
    return text;
  }

  #epoch(seconds: unknown): string {
    // Years outside 0–9999 cannot be written as RFC 3339.
    if (typeof seconds !== "number" || seconds < -62167219200 || seconds >= 253402300800) {
      throw new CborError(`${JSON.stringify(seconds)} is not a time`);
    }
    const whole = Math.floor(seconds);
    const nanos = Math.round((seconds - whole) * 1e6) * 1000;
    return formatInstant({ seconds: whole, nanos: Math.min(nanos, 999_999_000) }, nanos !== 0);
  }

  #simple(information: number, start: number): boolean | null | number {
    switch (information) {
      case 20:
        return false;
      case 21:
        return true;
      case 22:
        return null;
      case 25:
        return checkFinite(decodeHalf(this.#take(2).readUInt16BE()));
      case 26:
        return checkFinite(this.#take(4).readFloatBE());
      case 27:
        return checkFinite(this.#take(8).readDoubleBE());
      default:
        throw new CborError(`byte ${this.#bytes[start]} is not supported`);
    }
  }
}

function checkFinite(value: number): number {
  if (!Number.isFinite(value)) throw new CborError(`${value} is not valid in JSON`);
  return value;
}

/** Decodes a half-precision float: sign, five bits of exponent, ten of fraction. */
function decodeHalf(bits: number): number {
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}
