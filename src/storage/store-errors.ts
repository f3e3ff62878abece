/** The errors that all engines share. */
import { type KeyValue, type Range, type Revision, StoreError } from "./store.ts";

export function alreadyExists(key: string, current: KeyValue): StoreError {
  return new StoreError("exists", `Cannot create "${key}": it exists`, { current });
}

export function revisionConflict(key: string, expected: Revision, current: KeyValue | undefined): StoreError {
  const found = current === undefined ? "it does not exist" : `it is of revision ${current.modified}`;
  return new StoreError("conflict", `Cannot write "${key}" over revision ${expected}: ${found}`, { current });
}

export function storeClosed(): StoreError {
  return new StoreError("closed", "Cannot use the store: it is closed");
}

/** Throws unless the store can read at `revision`: from `oldest` to `current`. */
export function checkRevision(revision: Revision, oldest: Revision, current: Revision): void {
  if (!Number.isSafeInteger(revision) || revision < 0) throw new RangeError(`Cannot use revision ${revision}`);
  if (revision > current) {
    throw new StoreError("future-revision", `Cannot show revision ${revision}: the latest is ${current}`);
  }
  if (revision < oldest) {
    throw new StoreError("compacted", `Cannot show revision ${revision}: history before ${oldest} is compacted`);
  }
}

export function inRange(key: string, range: Range): boolean {
  return range.from <= key && key < range.to;
}
