/**
 * Finds the records of a message without decoding them. Every offset is checked against the end of the message, and
 * compression pointers are not followed, so a message of n bytes takes n steps at most.
 */
import { LABEL_BYTES_MAX, NAME_BYTES_MAX } from "./constants.ts";

/** Offsets in bytes from the start of the message. */
export interface RecordPosition {
  readonly start: number;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  /** Of the TTL; the length of the data follows it. */
  readonly ttlOffset: number;
  readonly dataOffset: number;
  /** After the data. */
  readonly end: number;
}

/** Type, class, TTL and length of the data. */
const FIXED_BYTES = 10;

/** The offset after the name; undefined when the name is malformed. */
export function skipName(bytes: Uint8Array, start: number): number | undefined {
  let offset = start;
  for (;;) {
    const length = bytes[offset];
    if (length === undefined) return undefined;
    if (length === 0) return offset + 1;
    if (length >= 0xc0) return offset + 2 <= bytes.length ? offset + 2 : undefined;
    if (length > LABEL_BYTES_MAX) return undefined;
    offset += 1 + length;
    if (offset - start >= NAME_BYTES_MAX) return undefined;
  }
}

/** Undefined when the record is malformed or ends after the message. */
export function readRecordPosition(bytes: Buffer, start: number): RecordPosition | undefined {
  const fixed = skipName(bytes, start);
  if (fixed === undefined || fixed + FIXED_BYTES > bytes.length) return undefined;
  const dataOffset = fixed + FIXED_BYTES;
  const end = dataOffset + bytes.readUInt16BE(fixed + 8);
  if (end > bytes.length) return undefined;
  return {
    start,
    type: bytes.readUInt16BE(fixed),
    class: bytes.readUInt16BE(fixed + 2),
    ttl: bytes.readUInt32BE(fixed + 4),
    ttlOffset: fixed + 4,
    dataOffset,
    end,
  };
}
