/** Protobuf's wire format: tags, varints, length-delimited values. */
import { Buffer } from "node:buffer";
import { INEXACT_INTEGER, int64ToNumber, numberToInt64 } from "../value/int64.ts";
import { TooManyValuesError } from "../value/limits.ts";

export const wireVarint = 0;
export const wireFixed64 = 1;
export const wireBytes = 2;
export const wireFixed32 = 5;

export function tagOf(field: number, type: number): number {
  return ((field << 3) | type) >>> 0;
}

export class ProtobufError extends Error {
  override readonly name = "ProtobufError";
}

/** The methods behind `write` and `toString`, which skip the checks of their arguments. */
interface Utf8Buffer extends Buffer {
  utf8Write(text: string, offset: number, length: number): number;
  utf8Slice(start: number, end: number): string;
}

const FIRST_BYTES = 4096;
const NOTHING = Buffer.alloc(0);
/** A larger buffer is not kept for the next writer. */
const SPARE_BYTES_MAX = 64 * 1024;
/**
 * The buffer of the last finished writer, for the next one. If each writer took its buffer from Node's pool, every
 * encoded object, a small slice of that pool, would keep several times its size alive.
 */
let spare: Buffer | undefined;

/**
 * Writes backwards, so that the length of a message is available before its header is written: callers write fields in
 * descending order, and each value before its tag.
 */
export class ReverseWriter {
  #bytes: Buffer;
  #start: number;

  constructor() {
    this.#bytes = spare ?? Buffer.allocUnsafeSlow(FIRST_BYTES);
    this.#start = this.#bytes.length;
    spare = undefined;
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#bytes.length - this.#start;
  }

  /** Returns a copy of the bytes and empties the writer. */
  take(): Buffer {
    const taken = Buffer.allocUnsafe(this.length);
    this.#bytes.copy(taken, 0, this.#start);
    if (this.#bytes.length <= SPARE_BYTES_MAX) spare = this.#bytes;
    this.#bytes = NOTHING;
    this.#start = 0;
    return taken;
  }

  /** Reserves `size` bytes and returns their offset. Can replace `#bytes`: call it before reading that field. */
  #reserve(size: number): number {
    if (this.#start < size) {
      const used = this.length;
      const grown = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, this.#bytes.length * 2, used + size));
      this.#bytes.copy(grown, grown.length - used, this.#start);
      this.#bytes = grown;
      this.#start = grown.length - used;
    }
    this.#start -= size;
    return this.#start;
  }

  tag(field: number, type: number): void {
    this.uint32(tagOf(field, type));
  }

  /** A varint of a whole number from 0 to 2^32-1. */
  uint32(value: number): void {
    if (value < 0x80) {
      const at = this.#reserve(1);
      this.#bytes[at] = value;
      return;
    }
    const size = value < 0x4000 ? 2 : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5;
    let at = this.#reserve(size);
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[at] = rest;
  }

  /** A varint of any 64-bit integer; negative ones take ten bytes. */
  int64(value: number | bigint): void {
    if (typeof value === "number" && value >= 0 && value <= 0xffffffff) this.uint32(value);
    else this.#bigVarint(BigInt.asUintN(64, typeof value === "bigint" ? value : numberToInt64(value)));
  }

  #bigVarint(value: bigint): void {
    const groups: number[] = [];
    let rest = value;
    do {
      groups.push(Number(rest & 0x7fn));
      rest >>= 7n;
    } while (rest > 0n);
    let at = this.#reserve(groups.length);
    for (let group = 0; group < groups.length; group++) {
      this.#bytes[at++] = (groups[group] ?? 0) | (group === groups.length - 1 ? 0 : 0x80);
    }
  }

  double(value: number): void {
    const at = this.#reserve(8);
    this.#bytes.writeDoubleLE(value, at);
  }

  float(value: number): void {
    const at = this.#reserve(4);
    this.#bytes.writeFloatLE(value, at);
  }

  /** Text with its length before it. */
  string(value: string): void {
    if (value.length < 32 && this.#ascii(value)) return;
    const size = Buffer.byteLength(value, "utf8");
    const at = this.#reserve(size);
    (this.#bytes as Utf8Buffer).utf8Write(value, at, size);
    this.uint32(size);
  }

  /** Short ASCII text is faster to write byte by byte than by a call into native code. */
  #ascii(value: string): boolean {
    const size = value.length;
    // The length takes one byte before the text.
    const at = this.#reserve(size + 1);
    const bytes = this.#bytes;
    for (let index = 0; index < size; index++) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) {
        this.#start += size + 1;
        return false;
      }
      bytes[at + 1 + index] = code;
    }
    bytes[at] = size;
    return true;
  }

  /** Bytes with their length before them. */
  bytes(value: Uint8Array): void {
    this.raw(value);
    this.uint32(value.length);
  }

  /** Two raw bytes. */
  pair(first: number, second: number): void {
    const at = this.#reserve(2);
    const bytes = this.#bytes;
    bytes[at] = first;
    bytes[at + 1] = second;
  }

  /** Bytes without their length. */
  raw(value: Uint8Array): void {
    const size = value.length;
    const at = this.#reserve(size);
    const bytes = this.#bytes;
    if (size > 24) bytes.set(value, at);
    else for (let index = 0; index < size; index++) bytes[at + index] = value[index] ?? 0;
  }
}

export interface ReadOptions {
  /** The maximum number of fields, items and map entries. */
  readonly valuesMax?: number;
  /** Refuses 64-bit integers that a number cannot hold, instead of rounding them. */
  readonly exactIntegers?: boolean;
}

export class Reader {
  readonly #bytes: Buffer;
  readonly #valuesMax: number;
  readonly #exactIntegers: boolean;
  #values: number;
  position: number;
  readonly end: number;

  constructor(bytes: Uint8Array, { valuesMax = Number.POSITIVE_INFINITY, exactIntegers = false }: ReadOptions = {}) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#valuesMax = valuesMax;
    this.#exactIntegers = exactIntegers;
    this.#values = 0;
    this.position = 0;
    this.end = bytes.length;
  }

  /** Throws a `TooManyValuesError` when there are more values than the reader accepts. */
  countValue(): void {
    if (++this.#values > this.#valuesMax) throw new TooManyValuesError(this.#valuesMax);
  }

  /** The tag of a field. Throws when the field number is 0. */
  tag(): number {
    const tag = this.uint32();
    if (tag >>> 3 === 0) throw new ProtobufError(`illegal tag 0 (wire type ${tag & 7})`);
    return tag;
  }

  /** A varint's low 32 bits; enough for tags and lengths. */
  uint32(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#byte();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new ProtobufError("varint is longer than ten bytes");
  }

  /** A varint as an unsigned 64-bit integer. */
  uint64(): bigint {
    let low = 0;
    let high = 0;
    for (let index = 0; index < 10; index++) {
      const byte = this.#byte();
      if (index < 4) low |= (byte & 0x7f) << (index * 7);
      else if (index === 4) {
        low |= (byte & 0x0f) << 28;
        high = (byte & 0x7f) >> 4;
      } else high |= (byte & 0x7f) << (index * 7 - 32);
      if (byte < 0x80) return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
    }
    throw new ProtobufError("varint is longer than ten bytes");
  }

  /** A varint as a signed 64-bit integer. Throws for one that a number cannot hold, or rounds it. */
  int64(): number {
    const first = this.#bytes[this.position];
    if (first !== undefined && first < 0x80 && this.position < this.end) {
      this.position++;
      return first;
    }
    const integer = BigInt.asIntN(64, this.uint64());
    const number = int64ToNumber(integer);
    if (number !== undefined || !this.#exactIntegers) return number ?? Number(integer);
    throw new ProtobufError(`integer ${integer}: ${INEXACT_INTEGER}`);
  }

  /** Reads a length and returns the end of the value; the position is then its first byte. */
  delimited(end: number): number {
    const size = this.uint32();
    const stop = this.position + size;
    if (stop > end) throw new ProtobufError("unexpected EOF");
    return stop;
  }

  string(end: number): string {
    const stop = this.delimited(end);
    const text = (this.#bytes as Utf8Buffer).utf8Slice(this.position, stop);
    this.position = stop;
    return text;
  }

  /** A copy. */
  bytes(end: number): Buffer {
    return Buffer.from(this.view(end));
  }

  /** A view of the bytes. */
  view(end: number): Buffer {
    const stop = this.delimited(end);
    const view = this.#bytes.subarray(this.position, stop);
    this.position = stop;
    return view;
  }

  double(): number {
    return this.#bytes.readDoubleLE(this.#advance(8));
  }

  float(): number {
    return this.#bytes.readFloatLE(this.#advance(4));
  }

  /** Skips the value of an unknown field. Rejects groups, which neither Kubernetes nor CRI uses. */
  skip(type: number, end: number): void {
    switch (type) {
      case wireVarint:
        this.uint64();
        break;
      case wireFixed64:
        this.#advance(8);
        break;
      case wireBytes:
        this.position = this.delimited(end);
        break;
      case wireFixed32:
        this.#advance(4);
        break;
      default:
        throw new ProtobufError(`illegal wireType ${type}`);
    }
    if (this.position > end) throw new ProtobufError("unexpected EOF");
  }

  #advance(size: number): number {
    const at = this.position;
    if (at + size > this.end) throw new ProtobufError("unexpected EOF");
    this.position = at + size;
    return at;
  }

  #byte(): number {
    if (this.position >= this.end) throw new ProtobufError("unexpected EOF");
    return this.#bytes[this.position++] ?? 0;
  }
}
