/** Messages of FUSE, protocol version 7.31 (`linux/fuse.h`): the requests that a file system in memory needs. */

export const opcodes = {
  lookup: 1,
  forget: 2,
  getattr: 3,
  setattr: 4,
  mkdir: 9,
  unlink: 10,
  rmdir: 11,
  rename: 12,
  open: 14,
  read: 15,
  write: 16,
  statfs: 17,
  release: 18,
  fsync: 20,
  flush: 25,
  init: 26,
  opendir: 27,
  readdir: 28,
  releasedir: 29,
  fsyncdir: 30,
  access: 34,
  create: 35,
  interrupt: 36,
  destroy: 38,
  batchForget: 42,
  rename2: 45,
} as const;

/** Requests that get no response. */
export const unanswered: ReadonlySet<number> = new Set([opcodes.forget, opcodes.batchForget, opcodes.interrupt]);

export const MAX_WRITE_BYTES = 128 * 1024;
/** The kernel refuses smaller buffers for requests. */
export const REQUEST_BYTES = MAX_WRITE_BYTES + 8192;

const REQUEST_HEADER_BYTES = 40;
const RESPONSE_HEADER_BYTES = 16;
const ATTRIBUTE_BYTES = 88;
/** The kernel may cache names: all changes pass through it. */
const NAME_CACHE_SECONDS = 3600n;

export interface FuseRequest {
  readonly opcode: number;
  readonly unique: bigint;
  readonly inode: number;
  readonly body: Buffer;
}

export function parseRequest(bytes: Buffer): FuseRequest {
  return {
    opcode: bytes.readUInt32LE(4),
    unique: bytes.readBigUInt64LE(8),
    inode: Number(bytes.readBigUInt64LE(16)),
    body: bytes.subarray(REQUEST_HEADER_BYTES, bytes.readUInt32LE(0)),
  };
}

/** `error` is an errno, 0 for success. */
export function encodeResponse(unique: bigint, error: number, body: Uint8Array = new Uint8Array()): Buffer {
  const header = Buffer.alloc(RESPONSE_HEADER_BYTES);
  header.writeUInt32LE(RESPONSE_HEADER_BYTES + body.length, 0);
  header.writeInt32LE(-error, 4);
  header.writeBigUInt64LE(unique, 8);
  return Buffer.concat([header, body]);
}

/** Strings that end with a zero byte. */
export function parseNames(bytes: Buffer): string[] {
  return bytes.toString("utf8").split("\0").slice(0, -1);
}

/** Accepts the kernel's version and none of its options but large writes, so that each write is a request at once. */
export function encodeInit(): Buffer {
  const FUSE_BIG_WRITES = 1 << 5;
  const body = Buffer.alloc(64);
  body.writeUInt32LE(7, 0);
  body.writeUInt32LE(31, 4);
  body.writeUInt32LE(FUSE_BIG_WRITES, 12);
  body.writeUInt32LE(MAX_WRITE_BYTES, 20);
  body.writeUInt32LE(1, 24);
  return body;
}

export interface FuseAttributes {
  readonly inode: number;
  readonly size: number;
  /** With the bits of the file type. */
  readonly mode: number;
}

function encodeAttributes({ inode, size, mode }: FuseAttributes): Buffer {
  const body = Buffer.alloc(ATTRIBUTE_BYTES);
  body.writeBigUInt64LE(BigInt(inode), 0);
  body.writeBigUInt64LE(BigInt(size), 8);
  body.writeBigUInt64LE(BigInt(Math.ceil(size / 512)), 16);
  body.writeUInt32LE(mode, 60);
  body.writeUInt32LE(1, 64);
  body.writeUInt32LE(4096, 80);
  return body;
}

/** The response to GETATTR and SETATTR. */
export function encodeAttributesResponse(attributes: FuseAttributes): Buffer {
  return Buffer.concat([Buffer.alloc(16), encodeAttributes(attributes)]);
}

/** The response to LOOKUP and MKDIR, and the first part of that to CREATE. */
export function encodeEntry(attributes: FuseAttributes): Buffer {
  const body = Buffer.alloc(40);
  body.writeBigUInt64LE(BigInt(attributes.inode), 0);
  body.writeBigUInt64LE(NAME_CACHE_SECONDS, 16);
  return Buffer.concat([body, encodeAttributes(attributes)]);
}

/** The response to OPEN and OPENDIR: no file handle, since requests carry the inode. */
export function encodeOpen(): Buffer {
  return Buffer.alloc(16);
}

export function encodeWritten(size: number): Buffer {
  const body = Buffer.alloc(8);
  body.writeUInt32LE(size, 0);
  return body;
}

export function encodeStatfs(totalBytes: number, freeBytes: number): Buffer {
  const body = Buffer.alloc(80);
  const blocks = (bytes: number): bigint => BigInt(Math.floor(bytes / 4096));
  body.writeBigUInt64LE(blocks(totalBytes), 0);
  for (const offset of [8, 16]) body.writeBigUInt64LE(blocks(freeBytes), offset);
  for (const offset of [24, 32]) body.writeBigUInt64LE(1_000_000n, offset);
  for (const [offset, value] of [
    [40, 4096],
    [44, 255],
    [48, 4096],
  ] as const)
    body.writeUInt32LE(value, offset);
  return body;
}

export interface DirectoryEntry {
  readonly name: string;
  readonly inode: number;
  readonly mode: number;
}

/** The entries from `offset` that fit into `size` bytes. */
export function encodeDirectory(entries: readonly DirectoryEntry[], offset: number, size: number): Buffer {
  const parts: Buffer[] = [];
  let length = 0;
  for (const [index, { name, inode, mode }] of entries.entries()) {
    if (index < offset) continue;
    const bytes = Buffer.from(name);
    const part = Buffer.alloc(24 + Math.ceil(bytes.length / 8) * 8);
    if (length + part.length > size) break;
    part.writeBigUInt64LE(BigInt(inode), 0);
    part.writeBigUInt64LE(BigInt(index + 1), 8);
    part.writeUInt32LE(bytes.length, 16);
    part.writeUInt32LE(mode >> 12, 20);
    bytes.copy(part, 24);
    parts.push(part);
    length += part.length;
  }
  return Buffer.concat(parts);
}
