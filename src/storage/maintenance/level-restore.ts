/** Creates an embedded store from a snapshot. */
import { readdir, rename, rm, rmdir } from "node:fs/promises";
import { dirname } from "node:path";
import { syncDirectory } from "../../std/fs/sync-directory.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Database, type Operation } from "../level/database.ts";
import { COMPACTED_KEY, headKey, REVISION_KEY, ttlKey, versionKey } from "../level/keys.ts";
import { readLayout } from "../level/layout.ts";
import { encodeHead, encodeNumber, encodeTtlEntry, encodeVersion } from "../level/record.ts";
import { type ReplacementNames, replaceStore } from "../level/replacement.ts";
import type { Revision } from "../store.ts";
import type { RestoreResult, Snapshot, SnapshotItem } from "./snapshot.ts";

const BATCH_BYTES = 2 * 2 ** 20;

export interface LevelRestoreOptions {
  /** The directory of the new store: it must not exist, or be empty. */
  readonly path: string;
  readonly log: Logger;
  /** By how much the revision of the store is higher than that of the snapshot. */
  readonly bumpRevision: number;
  /** Called before the store appears; a rejection discards it. */
  readonly confirm?: (() => Promise<void>) | undefined;
  /** What is in the place of the new store gets the first of these names when the new one is complete. */
  readonly replacement?: ReplacementNames | undefined;
}

/** Rejects with an error in one sentence when something is in the place of a new store. */
export async function rejectIfUsed(path: string): Promise<void> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw new Error(`Cannot write a store to ${path}: ${error.message}`, { cause: error });
  });
  if (names.length > 0) throw new Error(`Cannot write a store to ${path}: the directory is not empty`);
}

/**
 * Writes the store to a directory beside its own, which gets its name when all is on disk. The values keep their
 * revisions; the history before the store's revision counts as compacted, so that clients with older revisions list
 * again.
 */
export async function restoreLevel(snapshot: Snapshot, options: LevelRestoreOptions): Promise<RestoreResult> {
  const { path, log, bumpRevision, confirm, replacement } = options;
  if (replacement === undefined) await rejectIfUsed(path);
  const partial = `${path}.incomplete`;
  await rm(partial, { recursive: true, force: true });
  try {
    const revision = (snapshot.revision + bumpRevision) as Revision;
    const items = await writeLevel(partial, snapshot, revision, log);
    await confirm?.();
    await syncDirectory(partial);
    if (replacement !== undefined) await replaceStore(path, partial, replacement);
    else await moveToEmptyPlace(partial, path);
    return { items, revision };
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
}

async function moveToEmptyPlace(from: string, to: string): Promise<void> {
  await rejectIfUsed(to);
  await rmdir(to).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  await rename(from, to);
  await syncDirectory(dirname(to));
}

async function writeLevel(path: string, snapshot: Snapshot, revision: Revision, log: Logger): Promise<number> {
  const database = await Database.open(path, log);
  try {
    await readLayout(database, path);
    let items = 0;
    let operations: Operation[] = [];
    let size = 0;
    for await (const part of snapshot.parts()) {
      for (const item of part) {
        operations.push(...operationsOf(item));
        size += item.value.length + item.key.length;
        items++;
        if (size < BATCH_BYTES) continue;
        await database.write(operations);
        [operations, size] = [[], 0];
      }
    }
    operations.push({ type: "put", key: COMPACTED_KEY, value: encodeNumber(COMPACTED_KEY, revision) });
    operations.push({ type: "put", key: REVISION_KEY, value: encodeNumber(REVISION_KEY, revision) });
    await database.write(operations);
    return items;
  } finally {
    await database.close();
  }
}

function operationsOf({ key, value, created, modified, expiresAt }: SnapshotItem): Operation[] {
  const head = headKey(key);
  const version = versionKey(key, modified);
  const operations: Operation[] = [
    { type: "put", key: version, value: encodeVersion(version, created, value) },
    { type: "put", key: head, value: encodeHead(head, { modified, created }) },
  ];
  if (expiresAt !== undefined) {
    const ttl = ttlKey(modified);
    operations.push({ type: "put", key: ttl, value: encodeTtlEntry(ttl, { key, at: expiresAt }) });
  }
  return operations;
}
