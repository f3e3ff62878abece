/**
 * The values in LevelDB: four bytes of CRC-32, then the payload. The checksum includes the key, so that a block of
 * another key is detected. LevelDB's own checksums are not verified on reads through the binding, and it accepts a torn
 * log silently.
 */
import { crc32 } from "node:zlib";
import { type Revision, StoreError } from "../store.ts";
import { readRevision, writeRevision } from "./keys.ts";

const CRC_BYTES = 4;

/** The revisions of a key with a value. */
export interface Head {
  readonly modified: Revision;
  readonly created: Revision;
}

export interface Version {
  readonly created: Revision;
  /** Undefined when the key was deleted at this revision. */
  readonly value: Buffer | undefined;
}

export interface LogEntry {
  readonly key: string;
  /** Revision of the version before this one; 0 when the key had no value. */
  readonly previous: Revision;
}

export interface TtlEntry {
  readonly key: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export function encodeNumber(key: Buffer, number: number): Buffer {
  const record = Buffer.allocUnsafe(CRC_BYTES + 8);
  return seal(key, writeRevision(record, CRC_BYTES, number));
}

export function decodeNumber(key: Buffer, record: Buffer): number {
  return readRevision(unseal(key, record, 8), 0);
}

export function encodeHead(key: Buffer, head: Head): Buffer {
  const record = writeRevision(Buffer.allocUnsafe(CRC_BYTES + 16), CRC_BYTES, head.modified);
  return seal(key, writeRevision(record, CRC_BYTES + 8, head.created));
}

export function decodeHead(key: Buffer, record: Buffer): Head {
  const payload = unseal(key, record, 16);
  return { modified: readRevision(payload, 0), created: readRevision(payload, 8) };
}

/** One byte for value or deletion, eight for the revision of creation, then the value. */
export function encodeVersion(key: Buffer, created: Revision, value: Uint8Array | undefined): Buffer {
  const record = Buffer.allocUnsafe(CRC_BYTES + 9 + (value?.length ?? 0));
  record[CRC_BYTES] = value === undefined ? 0 : 1;
  writeRevision(record, CRC_BYTES + 1, created);
  if (value !== undefined) record.set(value, CRC_BYTES + 9);
  return seal(key, record);
}

export function decodeVersion(key: Buffer, record: Buffer): Version {
  const payload = unseal(key, record, 9);
  return { created: readRevision(payload, 1), value: payload[0] === 1 ? payload.subarray(9) : undefined };
}

export function encodeLogEntry(key: Buffer, entry: LogEntry): Buffer {
  return numberAndText(key, entry.previous, entry.key);
}

export function decodeLogEntry(key: Buffer, record: Buffer): LogEntry {
  const payload = unseal(key, record, 8);
  return { previous: readRevision(payload, 0), key: payload.toString("utf8", 8) };
}

export function encodeTtlEntry(key: Buffer, entry: TtlEntry): Buffer {
  return numberAndText(key, entry.at, entry.key);
}

export function decodeTtlEntry(key: Buffer, record: Buffer): TtlEntry {
  const payload = unseal(key, record, 8);
  return { at: readRevision(payload, 0), key: payload.toString("utf8", 8) };
}

function numberAndText(key: Buffer, number: number, text: string): Buffer {
  const record = Buffer.allocUnsafe(CRC_BYTES + 8 + Buffer.byteLength(text));
  writeRevision(record, CRC_BYTES, number).write(text, CRC_BYTES + 8);
  return seal(key, record);
}

function seal(key: Buffer, record: Buffer): Buffer {
  record.writeUInt32BE(crc32(record.subarray(CRC_BYTES), crc32(key)), 0);
  return record;
}

/** Checks the checksum and returns the payload. Throws a `StoreError` of code `corrupt`. */
function unseal(key: Buffer, record: Buffer, lengthMin: number): Buffer {
  const payload = record.subarray(CRC_BYTES);
  if (payload.length < lengthMin || record.readUInt32BE(0) !== crc32(payload, crc32(key))) {
    const name = key.toString("latin1").replace(/[^ -~]/g, ".");
    throw new StoreError("corrupt", `Cannot read record "${name}" of the embedded store: its checksum is wrong`);
  }
  return payload;
}
