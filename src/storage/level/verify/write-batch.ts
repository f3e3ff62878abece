/** A record of the write-ahead log: sequence number (8 bytes), number of operations (4), operations. */
import { REVISION_KEY } from "../keys.ts";
import { decodeNumber } from "../record.ts";
import { Decoder } from "./encoding.ts";

export interface WriteBatch {
  /** The sequence number of the first operation; the next batch continues after the last one. */
  readonly sequence: number;
  readonly operations: number;
  /** The revision of the store after the batch; undefined when the batch does not change it. */
  readonly revision: number | undefined;
}

export interface BatchOperation {
  readonly key: Buffer;
  readonly sequence: number;
  /** Undefined for a deletion. */
  readonly value: Buffer | undefined;
}

/** Throws a RangeError for other data. */
export function* readOperations(record: Buffer): Generator<BatchOperation> {
  const decoder = new Decoder(record);
  const first = decoder.fixed64();
  const operations = decoder.bytes(4).readUInt32LE();
  for (let i = 0; i < operations; i++) {
    const isPut = decoder.byte() === 1;
    const key = decoder.slice();
    yield { key, sequence: first + i, value: isPut ? decoder.slice() : undefined };
  }
}

/** Throws a RangeError or `StoreError` for other data. */
export function readWriteBatch(record: Buffer): WriteBatch {
  const decoder = new Decoder(record);
  const sequence = decoder.fixed64();
  const operations = decoder.bytes(4).readUInt32LE();
  let revision: number | undefined;
  for (let i = 0; i < operations; i++) {
    const isPut = decoder.byte() === 1;
    const key = decoder.slice();
    if (!isPut) continue;
    const value = decoder.slice();
    if (key.equals(REVISION_KEY)) revision = decodeNumber(key, value);
  }
  return { sequence, operations, revision };
}
