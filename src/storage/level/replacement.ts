/**
 * Puts a repaired store in the place of the damaged one. Two directories cannot change places at once: a process that
 * ends between the two renames leaves no store in that place, and a start would create an empty one. The names show
 * that it ended there, and the next start completes the replacement.
 *
 *     kvstore                kvstore.repaired-T          the repaired store is complete
 *     kvstore.damaged-T      kvstore.repaired-T          an end here is completed later
 *     kvstore.damaged-T      kvstore
 */
import { readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { syncDirectory } from "../../std/fs/sync-directory.ts";

/** Moves the store in `path` away and `repaired`, which is complete and on disk, to its place. */
export async function replaceStore(path: string, repaired: string, names: ReplacementNames): Promise<void> {
  await removeUnused(path);
  await renameDurably(repaired, names.repaired);
  await renameDurably(path, names.damaged);
  await renameDurably(names.repaired, path);
}

export interface ReplacementNames {
  readonly damaged: string;
  readonly repaired: string;
}

/** `time` distinguishes several repairs. */
export function replacementNames(path: string, time: string): ReplacementNames {
  return { damaged: `${path}.damaged-${time}`, repaired: `${path}.repaired-${time}` };
}

/** Completes a replacement that was interrupted; whether there was one. */
export async function finishReplacement(path: string): Promise<boolean> {
  if (await exists(path)) return false;
  for (const names of await findRepaired(path)) {
    if (!(await exists(names.damaged))) continue;
    await renameDurably(names.repaired, path);
    return true;
  }
  return false;
}

/** Repaired stores that a process left before it moved the damaged one. */
async function removeUnused(path: string): Promise<void> {
  for (const { repaired } of await findRepaired(path)) await rm(repaired, { recursive: true, force: true });
}

/** The latest first. */
async function findRepaired(path: string): Promise<readonly ReplacementNames[]> {
  const prefix = `${basename(path)}.repaired-`;
  const names = await readdir(dirname(path)).catch((): string[] => []);
  const times = names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  return times
    .sort()
    .reverse()
    .map((time) => replacementNames(path, time));
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncDirectory(dirname(to));
}
