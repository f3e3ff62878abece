/** What a disk may hold after a power cut: synced data, and any part of what was not synced. */
import type { RandomSource } from "../../../std/crypto/random.ts";
import {
  applyToContent,
  applyToTree,
  type ContentOperation,
  type DiskOperation,
  type DiskTree,
  type NameOperation,
  ROOT_INODE,
} from "./disk-operations.ts";

/**
 * What happens to names that are not synced. `journal`: as on ext4 and XFS, names change in order, and the sync of any
 * file commits all changes before it. `independent`: each change is lost or kept by itself, and the sync of a file
 * commits its own name alone, which is less than Linux file systems promise.
 */
export type NameModel = "journal" | "independent";

const SECTOR_BYTES = 512;

interface FileState {
  durable: Buffer;
  pending: ContentOperation[];
}

/** Follows the operations of a disk up to a point, and makes images of what a power cut there may leave. */
export class CrashModel {
  readonly #names: NameModel;
  readonly #tree: DiskTree = new Map([[ROOT_INODE, new Map()]]);
  readonly #files = new Map<number, FileState>();
  #pendingNames: NameOperation[] = [];

  constructor(names: NameModel) {
    this.#names = names;
  }

  apply(operation: DiskOperation): void {
    switch (operation.type) {
      case "write":
      case "truncate":
        this.#file(operation.inode).pending.push(operation);
        break;
      case "sync":
        this.#sync(operation.inode);
        break;
      // Linux takes the pages for written then.
      case "failed sync":
        this.#file(operation.inode).pending = [];
        break;
      default:
        this.#pendingNames.push(operation);
    }
  }

  #file(inode: number): FileState {
    const file = this.#files.get(inode) ?? { durable: Buffer.alloc(0), pending: [] };
    this.#files.set(inode, file);
    return file;
  }

  #sync(inode: number): void {
    const file = this.#files.get(inode);
    if (file !== undefined) {
      file.durable = file.pending.reduce(applyToContent, file.durable);
      file.pending = [];
    }
    const isCommitted = (operation: NameOperation): boolean =>
      this.#names === "journal" || operation.inode === inode || directoriesOf(operation).includes(inode);
    for (const operation of this.#pendingNames.filter(isCommitted)) applyToTree(this.#tree, operation);
    this.#pendingNames = this.#pendingNames.filter((operation) => !isCommitted(operation));
  }

  /** Contents by path; a directory ends with a slash. */
  image(random: RandomSource): Map<string, Buffer> {
    const tree: DiskTree = new Map([...this.#tree].map(([inode, entries]) => [inode, new Map(entries)]));
    const kept = Math.floor(random.fraction() * (this.#pendingNames.length + 1));
    for (const [index, operation] of this.#pendingNames.entries()) {
      if (this.#names === "journal" ? index < kept : random.fraction() < 0.5) applyToTree(tree, operation);
    }
    const found = new Map<string, Buffer>();
    const visit = (directory: number, path: string): void => {
      for (const [name, inode] of tree.get(directory) ?? []) {
        if (tree.has(inode)) {
          found.set(`${path}${name}/`, Buffer.alloc(0));
          visit(inode, `${path}${name}/`);
        } else found.set(`${path}${name}`, contentAfterCut(this.#files.get(inode), random));
      }
    };
    visit(ROOT_INODE, "");
    return found;
  }
}

function directoriesOf(operation: NameOperation): number[] {
  return operation.type === "rename" ? [operation.at.directory, operation.to.directory] : [operation.at.directory];
}

/** Pending writes are lost, kept, kept up to one of them, or kept by sectors in any order. */
function contentAfterCut(file: FileState | undefined, random: RandomSource): Buffer {
  if (file === undefined) return Buffer.alloc(0);
  const { durable, pending } = file;
  const way = Math.floor(random.fraction() * 4);
  if (way === 0) return durable;
  if (way === 1) return pending.reduce(applyToContent, durable);
  if (way === 2) return pending.slice(0, random.fraction() * pending.length).reduce(applyToContent, durable);
  const share = random.fraction();
  const parts = pending.flatMap((operation) => (operation.type === "write" ? sectorsOf(operation) : [operation]));
  return parts.filter(() => random.fraction() < share).reduce(applyToContent, durable);
}

/** A write, cut at the borders of sectors: a disk writes each whole or not at all. */
function sectorsOf(write: Extract<ContentOperation, { readonly type: "write" }>): ContentOperation[] {
  const parts: ContentOperation[] = [];
  for (let from = 0; from < write.bytes.length; ) {
    const offset = write.offset + from;
    const to = Math.min(write.bytes.length, from + SECTOR_BYTES - (offset % SECTOR_BYTES));
    parts.push({ ...write, offset, bytes: write.bytes.subarray(from, to) });
    from = to;
  }
  return parts;
}
