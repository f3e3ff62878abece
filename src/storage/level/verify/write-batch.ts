/** A record of the write-ahead log: sequence number (8 bytes), number of operations (4), operations. */
import { REVISION_KEY } from "../keys.ts";
import { Decoder } from "./encoding.ts";

export interface WriteBatch {
  /** The sequence number of the first operation; the next batch continues after the last one. */
  readonly sequence: number;
  readonly operations: number;
  /** The record of the store's revision after the batch; undefined when the batch does not change it. */
  readonly revision: Buffer | undefined;
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

/** Calls `visit` for each operation. Throws a RangeError for other data. */
export function readWriteBatch(record: Buffer, visit: (operation: BatchOperation) => void): WriteBatch {
  const head = new Decoder(record);
  const sequence = head.fixed64();
  const operations = head.bytes(4).readUInt32LE();
  let revision: Buffer | undefined;
  for (const operation of readOperations(record)) {
    visit(operation);
    if (operation.value !== undefined && operation.key.equals(REVISION_KEY)) revision = operation.value;
  }
  return { sequence, operations, revision };
}
