/** A file system in memory that records each change and each sync, served to the kernel by FUSE. */
import { constants } from "node:os";
import { applyToTree, type DiskOperation, type DiskTree, type NameOperation, ROOT_INODE } from "./disk-operations.ts";
import {
  type DirectoryEntry,
  encodeAttributesResponse,
  encodeDirectory,
  encodeEntry,
  encodeInit,
  encodeOpen,
  encodeStatfs,
  encodeWritten,
  type FuseAttributes,
  type FuseRequest,
  opcodes,
  parseNames,
} from "./fuse-messages.ts";

const { ENOENT, ENOSPC, ENOSYS, ENOTEMPTY } = constants.errno;
export const DISK_BYTES = 2 ** 30;
const SETATTR_MODE = 1 << 0;
const SETATTR_SIZE = 1 << 3;
const DIRECTORY_MODE = 0o040000;
const FILE_MODE = 0o100000;

interface Inode {
  mode: number;
  size: number;
  /** Grows by doubling; the rest is zero. */
  content: Buffer;
}

/** An errno instead of a response. */
class DiskError extends Error {
  readonly errno: number;
  constructor(errno: number) {
    super(`errno ${errno}`);
    this.errno = errno;
  }
}

export class RecordedDisk {
  /** Empty unless they are recorded. */
  readonly operations: DiskOperation[] = [];
  /** Writes beyond it fail. */
  capacityBytes = DISK_BYTES;
  /** Errors (errno) by the opcode of the requests that fail with them. */
  failures: ReadonlyMap<number, number> = new Map();
  readonly #isRecorded: boolean;
  #usedBytes = 0;
  readonly #tree: DiskTree = new Map([[ROOT_INODE, new Map()]]);
  readonly #inodes = new Map<number, Inode>([[ROOT_INODE, newInode(DIRECTORY_MODE | 0o755)]]);
  #next = ROOT_INODE + 1;

  constructor({ isRecorded = true }: { readonly isRecorded?: boolean } = {}) {
    this.#isRecorded = isRecorded;
  }

  /** Of all files that have a name. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** The response to a request, or an errno. */
  handle(request: FuseRequest): Buffer | number {
    try {
      return this.#handle(request);
    } catch (error) {
      if (error instanceof DiskError) return error.errno;
      throw error;
    }
  }

  #handle({ opcode, inode, body }: FuseRequest): Buffer | number {
    const errno = this.failures.get(opcode);
    if (errno !== undefined) {
      if (opcode === opcodes.fsync || opcode === opcodes.fsyncdir) this.#record({ type: "failed sync", inode });
      return errno;
    }
    switch (opcode) {
      case opcodes.init:
        return encodeInit();
      case opcodes.lookup:
        return encodeEntry(this.#attributes(this.#find(inode, parseNames(body)[0])));
      case opcodes.getattr:
        return encodeAttributesResponse(this.#attributes(inode));
      case opcodes.setattr:
        return this.#setAttributes(inode, body);
      case opcodes.mkdir:
        return encodeEntry(this.#create(inode, parseNames(body.subarray(8))[0], DIRECTORY_MODE | body.readUInt32LE(0)));
      case opcodes.create: {
        const mode = FILE_MODE | (body.readUInt32LE(4) & 0o7777);
        return Buffer.concat([encodeEntry(this.#create(inode, parseNames(body.subarray(16))[0], mode)), encodeOpen()]);
      }
      case opcodes.unlink:
      case opcodes.rmdir:
        return this.#unlink(inode, parseNames(body)[0]);
      case opcodes.rename:
        return this.#rename(inode, Number(body.readBigUInt64LE(0)), parseNames(body.subarray(8)));
      case opcodes.rename2:
        return this.#rename(inode, Number(body.readBigUInt64LE(0)), parseNames(body.subarray(16)));
      case opcodes.read:
        return this.#read(inode, Number(body.readBigUInt64LE(8)), body.readUInt32LE(16));
      case opcodes.write:
        return this.#write(inode, Number(body.readBigUInt64LE(8)), Buffer.from(body.subarray(40)));
      case opcodes.fsync:
      case opcodes.fsyncdir:
        this.#record({ type: "sync", inode });
        return Buffer.alloc(0);
      case opcodes.readdir:
        return encodeDirectory(this.#entries(inode), Number(body.readBigUInt64LE(8)), body.readUInt32LE(16));
      case opcodes.statfs:
        return encodeStatfs(DISK_BYTES, Math.max(0, this.capacityBytes - this.#usedBytes));
      case opcodes.open:
      case opcodes.opendir:
        return encodeOpen();
      case opcodes.release:
      case opcodes.releasedir:
      case opcodes.flush:
      case opcodes.access:
      case opcodes.destroy:
        return Buffer.alloc(0);
      default:
        return ENOSYS;
    }
  }

  #inode(inode: number): Inode {
    const found = this.#inodes.get(inode);
    if (found === undefined) throw new DiskError(ENOENT);
    return found;
  }

  #find(directory: number, name = ""): number {
    const inode = this.#tree.get(directory)?.get(name);
    if (inode === undefined) throw new DiskError(ENOENT);
    return inode;
  }

  #attributes(inode: number): FuseAttributes {
    const { mode, size } = this.#inode(inode);
    return { inode, mode, size };
  }

  #entries(directory: number): DirectoryEntry[] {
    const entries = [...(this.#tree.get(directory) ?? [])];
    return entries.map(([name, inode]) => ({ name, inode, mode: this.#inode(inode).mode }));
  }

  #change(operation: NameOperation): void {
    applyToTree(this.#tree, operation);
    this.#record(operation);
  }

  #record(operation: DiskOperation): void {
    if (this.#isRecorded) this.operations.push(operation);
  }

  #create(directory: number, name = "", mode: number): FuseAttributes {
    const inode = this.#next++;
    this.#inodes.set(inode, newInode(mode));
    const kind = (mode & DIRECTORY_MODE) === DIRECTORY_MODE ? "directory" : "file";
    this.#change({ type: "create", inode, kind, at: { directory, name } });
    return this.#attributes(inode);
  }

  #unlink(directory: number, name = ""): Buffer {
    const inode = this.#find(directory, name);
    if ((this.#tree.get(inode)?.size ?? 0) > 0) throw new DiskError(ENOTEMPTY);
    this.#usedBytes -= this.#inode(inode).size;
    this.#change({ type: "unlink", inode, at: { directory, name } });
    return Buffer.alloc(0);
  }

  #rename(directory: number, newDirectory: number, [name = "", newName = ""]: readonly string[]): Buffer {
    const inode = this.#find(directory, name);
    const to = { directory: newDirectory, name: newName };
    const replaced = this.#tree.get(newDirectory)?.get(newName);
    if (replaced !== undefined && replaced !== inode) this.#usedBytes -= this.#inode(replaced).size;
    this.#change({ type: "rename", inode, at: { directory, name }, to });
    return Buffer.alloc(0);
  }

  #setAttributes(inode: number, body: Buffer): Buffer {
    const valid = body.readUInt32LE(0);
    const file = this.#inode(inode);
    if ((valid & SETATTR_MODE) !== 0) file.mode = (file.mode & ~0o7777) | (body.readUInt32LE(68) & 0o7777);
    if ((valid & SETATTR_SIZE) !== 0) {
      const size = Number(body.readBigUInt64LE(16));
      reserve(file, size);
      file.content.fill(0, size);
      this.#usedBytes += size - file.size;
      file.size = size;
      this.#record({ type: "truncate", inode, size });
    }
    return encodeAttributesResponse(this.#attributes(inode));
  }

  #read(inode: number, offset: number, size: number): Buffer {
    const file = this.#inode(inode);
    return file.content.subarray(offset, Math.max(offset, Math.min(offset + size, file.size)));
  }

  #write(inode: number, offset: number, bytes: Buffer): Buffer {
    const file = this.#inode(inode);
    const growth = Math.max(0, offset + bytes.length - file.size);
    if (growth > 0 && this.#usedBytes + growth > this.capacityBytes) throw new DiskError(ENOSPC);
    reserve(file, offset + bytes.length);
    bytes.copy(file.content, offset);
    file.size += growth;
    this.#usedBytes += growth;
    this.#record({ type: "write", inode, offset, bytes });
    return encodeWritten(bytes.length);
  }
}

function newInode(mode: number): Inode {
  return { mode, size: 0, content: Buffer.alloc(0) };
}

function reserve(file: Inode, size: number): void {
  if (size <= file.content.length) return;
  const grown = Buffer.alloc(Math.max(size, file.content.length * 2, 4096));
  file.content.copy(grown);
  file.content = grown;
}
