/**
 * The keys in LevelDB, which are ordered bytes. The first letter is the type of the entry:
 *
 *     f                      version of this format
 *     r                      revision of the latest write
 *     c                      oldest readable revision
 *     h KEY                  head: modification and creation revision of the key's value; absent when it has none
 *     v KEY 00 REVISION      version: the value at that revision, or its deletion
 *     l REVISION             log: the changed key, and the revision of its previous version
 *     t REVISION             time to live of that write: expiry time and key
 *
 * REVISION is 8 bytes, big end first. In KEY a NUL is 00 FF, so that the end of a key sorts before any continuation:
 * all versions of `/a` come before the first of `/a\\0`, and a range may start there.
 */
import type { Revision } from "../store.ts";

/** The first letters of keys with a key or a revision. */
export const LETTER = { head: 0x68, log: 0x6c, ttl: 0x74, version: 0x76 } as const;

/** Incremented when the format here or in `record.ts` changes; older formats are then converted in `layout.ts`. */
export const FORMAT = 1;

export const FORMAT_KEY = Buffer.from("f");
export const REVISION_KEY = Buffer.from("r");
export const COMPACTED_KEY = Buffer.from("c");

const REVISION_BYTES = 8;

export function headKey(key: string): Buffer {
  return withLetter(LETTER.head, key, 0);
}

export function versionKey(key: string, revision: Revision): Buffer {
  const bytes = withLetter(LETTER.version, key, 1 + REVISION_BYTES);
  bytes[bytes.length - REVISION_BYTES - 1] = 0;
  return writeRevision(bytes, bytes.length - REVISION_BYTES, revision);
}

/** The lower bound of all versions of `key` and later keys. */
export function versionBound(key: string): Buffer {
  return withLetter(LETTER.version, key, 0);
}

export function logKey(revision: Revision): Buffer {
  return letterRevision(LETTER.log, revision);
}

export function ttlKey(revision: Revision): Buffer {
  return letterRevision(LETTER.ttl, revision);
}

/** All entries of one letter that is followed by a revision. */
export const TTL_RANGE = { gte: Buffer.of(LETTER.ttl), lt: Buffer.of(LETTER.ttl + 1) };
export const LOG_RANGE = { gte: Buffer.of(LETTER.log), lt: Buffer.of(LETTER.log + 1) };

export const ALL_KEYS = { gte: Buffer.of(0), lt: Buffer.of(0xff) };

/** The revision at the end of a version, log or time-to-live key. */
export function revisionOf(bytes: Buffer): Revision {
  return readRevision(bytes, bytes.length - REVISION_BYTES);
}

/** The store key in a head key. */
export function keyOfHead(bytes: Buffer): string {
  return unescapeNul(bytes.toString("utf8", 1));
}

/** Whether two version keys are of the same store key. */
export function sameKey(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && a.compare(b, 0, b.length - REVISION_BYTES, 0, a.length - REVISION_BYTES) === 0;
}

/** The store key in a version key. */
export function keyOf(bytes: Buffer): string {
  return unescapeNul(bytes.toString("utf8", 1, bytes.length - REVISION_BYTES - 1));
}

/** FF is no UTF-8: an escaped NUL reads as NUL and a replacement character. */
function unescapeNul(key: string): string {
  return key.includes("\0") ? key.replaceAll("\0\ufffd", "\0") : key;
}

export function writeRevision(bytes: Buffer, offset: number, revision: number): Buffer {
  bytes.writeUInt32BE(Math.floor(revision / 2 ** 32), offset);
  bytes.writeUInt32BE(revision >>> 0, offset + 4);
  return bytes;
}

export function readRevision(bytes: Buffer, offset: number): Revision {
  return (bytes.readUInt32BE(offset) * 2 ** 32 + bytes.readUInt32BE(offset + 4)) as Revision;
}

function letterRevision(letter: number, revision: Revision): Buffer {
  const bytes = Buffer.allocUnsafe(1 + REVISION_BYTES);
  bytes[0] = letter;
  return writeRevision(bytes, 1, revision);
}

function withLetter(letter: number, key: string, extra: number): Buffer {
  const text = key.includes("\0") ? escapeNul(key) : Buffer.from(key, "utf8");
  const bytes = Buffer.allocUnsafe(1 + text.length + extra);
  bytes[0] = letter;
  text.copy(bytes, 1);
  return bytes;
}

function escapeNul(key: string): Buffer {
  const parts = key.split("\0").map((part) => Buffer.from(part, "utf8"));
  return Buffer.concat(parts.flatMap((part, i) => (i === 0 ? [part] : [Buffer.of(0, 0xff), part])));
}
