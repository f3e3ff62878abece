/** Splits a CBOR sequence (RFC 8742), such as a watch, into its items while it arrives. */
import { Buffer } from "node:buffer";
import { CborError } from "./error.ts";

/** More than the largest watch event. */
const ITEM_BYTES_MAX = 64 * 1024 * 1024;

const BREAK = 0xff;
const INDEFINITE = 31;
const TAG = 6;
/** The bytes after the initial byte, by its additional information. */
const ARGUMENT_BYTES = [1, 2, 4, 8];

/** The encoded items, each with all its tags. An incomplete last one is dropped. Throws a `CborError`. */
export async function* readCborSequence(body: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let pending: Buffer = Buffer.alloc(0);
  let scanner = new ItemScanner();
  for await (const chunk of body) {
    pending = pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([pending, chunk]);
    for (let end = scanner.scan(pending); end !== undefined; end = scanner.scan(pending)) {
      yield pending.subarray(0, end);
      pending = pending.subarray(end);
      scanner = new ItemScanner();
    }
    if (pending.length > ITEM_BYTES_MAX) {
      throw new CborError(`an item of the sequence is longer than ${ITEM_BYTES_MAX} bytes`);
    }
  }
}

/** Finds the end of one item without decoding it; continues where the bytes ended before. */
class ItemScanner {
  #at = 0;
  /** For each open list, map or string of chunks, from the outside: the items left, infinite until a break. */
  readonly #open: number[] = [];

  /** The length of the item, undefined while the bytes do not have all of it. `bytes` only grows between calls. */
  scan(bytes: Buffer): number | undefined {
    while (this.#at < bytes.length) {
      const isComplete = this.#head(bytes);
      if (isComplete === undefined) return undefined;
      if (isComplete && this.#closeFinished()) return this.#at;
    }
    return undefined;
  }

  /** Reads one initial byte with what belongs to it. Whether an item ended; undefined if bytes are missing. */
  #head(bytes: Buffer): boolean | undefined {
    const head = bytes[this.#at]!;
    if (head === BREAK) {
      if (this.#open.pop() !== Number.POSITIVE_INFINITY) throw new CborError("a break without an indefinite length");
      this.#at++;
      return true;
    }
    const type = head >> 5;
    const information = head & 0x1f;
    if (information === INDEFINITE && type >= 2 && type <= 5) {
      this.#at++;
      this.#open.push(Number.POSITIVE_INFINITY);
      return false;
    }
    const argumentBytes = information < 24 ? 0 : ARGUMENT_BYTES[information - 24];
    if (argumentBytes === undefined) throw new CborError(`additional information ${information} is not defined here`);
    const start = this.#at + 1 + argumentBytes;
    if (start > bytes.length) return undefined;
    const argument = argumentBytes === 0 ? information : readArgument(bytes, this.#at + 1, argumentBytes);
    const isString = type === 2 || type === 3;
    if (isString && start + argument > bytes.length) return undefined;
    this.#at = isString ? start + argument : start;
    const items = type === 4 ? argument : type === 5 ? argument * 2 : 0;
    if (items > 0) this.#open.push(items);
    return items === 0 && type !== TAG;
  }

  /** Counts a finished item in what contains it. Whether the outermost is finished. */
  #closeFinished(): boolean {
    for (let left = this.#open.pop(); left !== undefined; left = this.#open.pop()) {
      if (left > 1) {
        this.#open.push(left - 1);
        return false;
      }
    }
    return true;
  }
}

function readArgument(bytes: Buffer, at: number, size: number): number {
  return size === 8 ? Number(bytes.readBigUInt64BE(at)) : bytes.readUIntBE(at, size);
}
