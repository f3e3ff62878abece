/**
 * Whether a process has a database open. LevelDB checks its lock only when it opens a database, after it has renamed
 * the file LOG. Here it opens an empty directory instead, whose LOCK is a link to that of the database.
 */
import { mkdtemp, realpath, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StoreError } from "../store.ts";
import { addAddonDirectory } from "./native.ts";

const LOCK_FILE = "LOCK";

/**
 * Directories that this process has open. Locks of POSIX do not conflict within a process, and end when it closes any
 * handle of the file.
 */
const openDirectories = new Set<string>();

/** Call while this process has the database open; dispose the result when it is closed. */
export async function trackOpenDirectory(path: string): Promise<Disposable> {
  const directory = await realpath(path);
  openDirectories.add(directory);
  return { [Symbol.dispose]: () => void openDirectories.delete(directory) };
}

/** Rejects with `locked` when a process has the database open. Changes no file of it. */
export async function rejectIfOpen(path: string): Promise<void> {
  const lock = join(path, LOCK_FILE);
  const exists = await stat(lock).catch(() => undefined);
  if (exists === undefined) return;
  if (!openDirectories.has(await realpath(path)) && !(await isLocked(path, lock))) return;
  throw new StoreError("locked", `Cannot open the embedded store in "${path}": another process has it open`);
}

async function isLocked(path: string, lock: string): Promise<boolean> {
  addAddonDirectory(path);
  const { Level } = await import("level");
  const directory = await makeTemporaryDirectory(path);
  try {
    await symlink(await realpath(lock), join(directory, LOCK_FILE));
    await new Level(directory).open({ createIfMissing: false });
    return false;
  } catch (error) {
    return hasLockedCode(error);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** A file system that is full or read-only leaves the next one. */
async function makeTemporaryDirectory(path: string): Promise<string> {
  let failure: unknown;
  for (const parent of [tmpdir(), "/dev/shm", "/run", path]) {
    try {
      return await mkdtemp(join(parent, ".svc-lock-"));
    } catch (error) {
      failure = error;
    }
  }
  throw new StoreError("unavailable", `Cannot check whether a process has the embedded store in "${path}" open`, {
    cause: failure,
  });
}

function hasLockedCode(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (error as { readonly code?: unknown }).code === "LEVEL_LOCKED" || hasLockedCode(error.cause);
}
