/**
 * Reads LevelDB's log format, which the write-ahead logs and the MANIFEST have: blocks of 32 KiB with fragments of
 * records. A fragment has a checksum (4 bytes), a length (2), a type (1) and its payload, and does not cross a block.
 * See doc/log_format.md of LevelDB.
 */
import { crc32c, maskCrc32c } from "./crc32c.ts";

const BLOCK_BYTES = 32 * 1024;
const HEADER_BYTES = 7;
const FULL = 1;
const FIRST = 2;
/** 3 is MIDDLE. */
const LAST = 4;

export interface LogDamage {
  /** The offset of the first record that cannot be read. */
  readonly offset: number;
  readonly why: "incomplete" | "checksum";
  /** Whether no complete record follows: then a power cut during the last write may be the cause. */
  readonly atEnd: boolean;
}

export interface LogContent {
  /** The records before the damage. */
  readonly records: readonly Buffer[];
  readonly damage: LogDamage | undefined;
}

interface Fragment {
  readonly type: number;
  readonly payload: Buffer;
  readonly next: number;
}

export function readLogFile(bytes: Buffer): LogContent {
  const records: Buffer[] = [];
  let parts: Buffer[] | undefined;
  let start = 0;
  let position = 0;
  const damaged = (why: LogDamage["why"], from: number): LogContent => {
    return { records, damage: { offset: start, why, atEnd: !hasRecordAfter(bytes, from) } };
  };
  for (;;) {
    position = skipTrailer(position);
    if (parts === undefined) start = position;
    if (position >= bytes.length) break;
    const fragment = readFragment(bytes, position);
    if (typeof fragment === "string") return damaged(fragment, position + 1);
    const { type, payload, next } = fragment;
    const begins = type === FULL || type === FIRST;
    // A first fragment after an incomplete record is a complete or later record, so the earlier one was lost.
    if (begins !== (parts === undefined)) return damaged("incomplete", begins ? position : next);
    parts = parts === undefined ? [payload] : [...parts, payload];
    if (type === FULL || type === LAST) {
      records.push(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
      parts = undefined;
    }
    position = next;
  }
  return parts === undefined ? { records, damage: undefined } : damaged("incomplete", bytes.length);
}

/** The rest of a block that is too short for a header is unused. */
function skipTrailer(position: number): number {
  const left = BLOCK_BYTES - (position % BLOCK_BYTES);
  return left < HEADER_BYTES ? position + left : position;
}

function readFragment(bytes: Buffer, position: number): Fragment | LogDamage["why"] {
  if (position + HEADER_BYTES > bytes.length) return "incomplete";
  const length = bytes.readUInt16LE(position + 4);
  const type = bytes[position + 6]!;
  const next = position + HEADER_BYTES + length;
  if (type < FULL || type > LAST) return "checksum";
  if (next > position - (position % BLOCK_BYTES) + BLOCK_BYTES) return "checksum";
  if (next > bytes.length) return "incomplete";
  if (maskCrc32c(crc32c(bytes.subarray(position + 6, next))) !== bytes.readUInt32LE(position)) return "checksum";
  return { type, payload: bytes.subarray(position + HEADER_BYTES, next), next };
}

/** Whether a record begins at or after this offset. The lengths before it may be wrong: tries every offset. */
function hasRecordAfter(bytes: Buffer, from: number): boolean {
  for (let position = from; position + HEADER_BYTES <= bytes.length; position++) {
    const type = bytes[position + 6];
    if (type !== FULL && type !== FIRST) continue;
    // A batch of writes has at least 12 bytes; shorter candidates are mostly accidental.
    if (bytes.readUInt16LE(position + 4) >= 12 && typeof readFragment(bytes, position) !== "string") return true;
  }
  return false;
}
