/**
 * Verifies a table of LevelDB: data blocks, filter and metaindex block, index block, footer. Each block has a type (1
 * byte) and a checksum (4) after it. See doc/table_format.md of LevelDB.
 */
import { runSteps, type Steps } from "../../../std/async/steps.ts";
import { crc32cOfParts, maskCrc32c } from "./crc32c.ts";
import { Decoder } from "./encoding.ts";
import { decompressSnappy } from "./snappy.ts";

const FOOTER_BYTES = 48;
const TRAILER_BYTES = 5;
const INTERNAL_BYTES = 8;
const MAGIC = 0xdb4775248b80fb57n;

interface BlockHandle {
  readonly offset: number;
  readonly size: number;
}

/** Returns why the table cannot be trusted; undefined when all of its blocks are as they were written. */
export function findTableDamage(bytes: Buffer): string | undefined {
  return runSteps(findTableDamageInSteps(bytes));
}

/** The same in steps of a block: a table has two MiB, which take milliseconds. */
export function* findTableDamageInSteps(bytes: Buffer): Steps<string | undefined> {
  try {
    yield* verifyTable(bytes);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function* verifyTable(bytes: Buffer): Steps<void> {
  const footer = bytes.length - FOOTER_BYTES;
  if (footer < 0 || bytes.readBigUInt64LE(bytes.length - 8) !== MAGIC) throw new RangeError("its footer is missing");
  const decoder = new Decoder(bytes, footer);
  const [metaindex, index] = [readHandle(decoder), readHandle(decoder)];
  // The unused bytes of the footer are zero.
  if (bytes.subarray(decoder.offset, bytes.length - 8).some((byte) => byte !== 0)) {
    throw new RangeError("its footer is damaged");
  }
  // Each block by itself: between two steps others may compute checksums, in the same memory.
  const checksum: Checksum = (start, end) => crc32cOfParts(bytes.subarray(start, end))(0, end - start);
  verifyBlock(bytes, index, checksum);
  verifyBlock(bytes, metaindex, checksum);
  const data = blockHandles(readBlock(bytes, index));
  const meta = blockHandles(readBlock(bytes, metaindex));
  let end = 0;
  for (const handle of [...data, ...meta, metaindex, index]) {
    if (handle.offset !== end) throw new RangeError(`no block is at offset ${end}`);
    verifyBlock(bytes, handle, checksum);
    end = handle.offset + handle.size + TRAILER_BYTES;
    yield;
  }
  if (end !== footer) throw new RangeError(`no block is at offset ${end}`);
}

export interface TableEntry {
  readonly key: Buffer;
  readonly sequence: number;
  readonly isDeletion: boolean;
  readonly value: Buffer;
}

/** A block of a table: its entries, or why they are lost. */
export interface TableBlock {
  /** Its keys are above the first, which is undefined for the first block, and at most the second. */
  readonly after: Buffer | undefined;
  readonly last: Buffer;
  readonly entries: readonly TableEntry[];
  readonly damage: string | undefined;
}

/** The data blocks of a table that may be damaged. Throws a RangeError when its list of blocks cannot be read. */
export function* readTableBlocks(bytes: Buffer): Generator<TableBlock> {
  const footer = bytes.length - FOOTER_BYTES;
  if (footer < 0 || bytes.readBigUInt64LE(bytes.length - 8) !== MAGIC) throw new RangeError("its footer is missing");
  const decoder = new Decoder(bytes, footer);
  readHandle(decoder);
  const index = readHandle(decoder);
  const checksum = crc32cOfParts(bytes);
  verifyBlock(bytes, index, checksum);
  let after: Buffer | undefined;
  for (const [key, value] of blockEntries(readBlock(bytes, index))) {
    const last = key.subarray(0, Math.max(0, key.length - INTERNAL_BYTES));
    let entries: readonly TableEntry[] = [];
    let damage: string | undefined;
    try {
      const handle = readHandle(new Decoder(value));
      verifyBlock(bytes, handle, checksum);
      entries = blockEntries(readBlock(bytes, handle)).map(([internal, content]) => toTableEntry(internal, content));
    } catch (error) {
      damage = error instanceof Error ? error.message : String(error);
    }
    yield { after, last, entries, damage };
    after = last;
  }
}

/** The newest entry of a key in a table without damage, a value or a deletion; undefined when it has none. */
export function newestEntry(bytes: Buffer, key: Buffer): TableEntry | undefined {
  // The entries of a key are in descending order of their sequence numbers.
  return entriesBetween(bytes, { gte: key, lt: Buffer.concat([key, Buffer.of(0)]) }).next().value;
}

/** The entries of a table without damage whose keys are in the range. */
export function* entriesBetween(
  bytes: Buffer,
  { gte, lt }: { readonly gte: Buffer; readonly lt: Buffer },
): Generator<TableEntry, undefined> {
  const decoder = new Decoder(bytes, bytes.length - FOOTER_BYTES);
  readHandle(decoder);
  for (const [last, value] of blockEntries(readBlock(bytes, readHandle(decoder)))) {
    if (last.subarray(0, last.length - INTERNAL_BYTES).compare(gte) < 0) continue;
    for (const [internal, content] of blockEntries(readBlock(bytes, readHandle(new Decoder(value))))) {
      const entry = toTableEntry(internal, content);
      if (entry.key.compare(lt) >= 0) return undefined;
      if (entry.key.compare(gte) >= 0) yield entry;
    }
  }
  return undefined;
}

/** A key in a table ends with its sequence number and its type: 0 for a deletion. */
function toTableEntry(internal: Buffer, value: Buffer): TableEntry {
  const end = internal.length - INTERNAL_BYTES;
  // Seven bytes for the number, of which no store uses more than six.
  const sequence = internal.readUIntLE(end + 1, 6) + internal.readUInt8(end + 7) * 2 ** 48;
  return { key: internal.subarray(0, end), sequence, isDeletion: internal.readUInt8(end) === 0, value };
}

function readHandle(decoder: Decoder): BlockHandle {
  return { offset: decoder.varint(), size: decoder.varint() };
}

type Checksum = (start: number, end: number) => number;

function verifyBlock(bytes: Buffer, { offset, size }: BlockHandle, checksum: Checksum): void {
  const end = offset + size;
  if (end + TRAILER_BYTES > bytes.length) throw new RangeError(`the block at offset ${offset} is missing`);
  if (maskCrc32c(checksum(offset, end + 1)) !== bytes.readUInt32LE(end + 1)) {
    throw new RangeError(`the checksum of the block at offset ${offset} is wrong`);
  }
}

function readBlock(bytes: Buffer, handle: BlockHandle): Buffer {
  const content = bytes.subarray(handle.offset, handle.offset + handle.size);
  return bytes[handle.offset + handle.size] === 1 ? decompressSnappy(content) : content;
}

/** After the entries of a block are the offsets of restarts, and their number. */
function blockEntries(block: Buffer): [key: Buffer, value: Buffer][] {
  const restarts = block.readUInt32LE(block.length - 4);
  const content = block.subarray(0, block.length - 4 * (restarts + 1));
  const entries: [Buffer, Buffer][] = [];
  let key: Buffer = Buffer.alloc(0);
  for (const decoder = new Decoder(content); !decoder.done; ) {
    const [shared, rest, length] = [decoder.varint(), decoder.varint(), decoder.varint()];
    key = Buffer.concat([key.subarray(0, shared), decoder.bytes(rest)]);
    entries.push([key, decoder.bytes(length)]);
  }
  return entries;
}

/** The values of an index block. */
function blockHandles(block: Buffer): BlockHandle[] {
  const restarts = block.readUInt32LE(block.length - 4);
  const entries = block.subarray(0, block.length - 4 * (restarts + 1));
  const handles: BlockHandle[] = [];
  for (const decoder = new Decoder(entries); !decoder.done; ) {
    // Each key shares the first bytes with the previous one.
    decoder.varint();
    const [rest, length] = [decoder.varint(), decoder.varint()];
    decoder.bytes(rest);
    handles.push(readHandle(new Decoder(decoder.bytes(length))));
  }
  return handles;
}
