/** Changes of a file system, in the order in which programs requested them. */

export const ROOT_INODE = 1;

export type DiskOperation =
  | { readonly type: "create"; readonly inode: number; readonly kind: "file" | "directory"; readonly at: DiskName }
  | { readonly type: "write"; readonly inode: number; readonly offset: number; readonly bytes: Buffer }
  | { readonly type: "truncate"; readonly inode: number; readonly size: number }
  | { readonly type: "unlink"; readonly inode: number; readonly at: DiskName }
  | { readonly type: "rename"; readonly inode: number; readonly at: DiskName; readonly to: DiskName }
  /** `fsync` or `fdatasync` of a file or a directory. */
  | { readonly type: "sync"; readonly inode: number }
  /** One that reported an error: what it should have written may never be, also when a later one succeeds. */
  | { readonly type: "failed sync"; readonly inode: number };

export interface DiskName {
  /** The inode of the directory. */
  readonly directory: number;
  readonly name: string;
}

/** Changes of names, as opposed to those of contents. */
export type NameOperation = Extract<DiskOperation, { readonly at: DiskName }>;
export type ContentOperation = Extract<DiskOperation, { readonly type: "write" | "truncate" }>;

/** A file with a write or a truncation applied; bytes that nothing wrote are zero. */
export function applyToContent(content: Buffer, operation: ContentOperation): Buffer {
  if (operation.type === "truncate") return resize(content, operation.size);
  const end = operation.offset + operation.bytes.length;
  const changed = end > content.length ? resize(content, end) : Buffer.from(content);
  operation.bytes.copy(changed, operation.offset);
  return changed;
}

function resize(content: Buffer, size: number): Buffer {
  const resized = Buffer.alloc(size);
  content.copy(resized);
  return resized;
}

/** Directories by inode, entries by name. */
export type DiskTree = Map<number, Map<string, number>>;

/** Applies a change of names; one whose source is missing has no effect. */
export function applyToTree(tree: DiskTree, operation: NameOperation): void {
  const { type, inode, at } = operation;
  if (type === "create") {
    tree.get(at.directory)?.set(at.name, inode);
    if (operation.kind === "directory" && !tree.has(inode)) tree.set(inode, new Map());
    return;
  }
  if (tree.get(at.directory)?.get(at.name) === inode) tree.get(at.directory)?.delete(at.name);
  if (type === "rename") tree.get(operation.to.directory)?.set(operation.to.name, inode);
}

/** The same operations without the bytes that are written to files of this name. */
export function withoutContent(operations: readonly DiskOperation[], name: string): readonly DiskOperation[] {
  const inodes = new Set(
    operations.flatMap((each) => (each.type === "create" && each.at.name === name ? [each.inode] : [])),
  );
  const empty = Buffer.alloc(0);
  return operations.map((each) =>
    each.type === "write" && inodes.has(each.inode) ? { ...each, offset: 0, bytes: empty } : each,
  );
}
