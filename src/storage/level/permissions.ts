/** What is stored holds secrets: nobody else who uses the machine has any business there. */
import { chmod, readdir, stat } from "node:fs/promises";
import type { Logger } from "../../std/log/logger.ts";

/** LevelDB's own files. */
const LEVELDB_FILES = /^(?:CURRENT|LOCK|LOG|LOG\.old|MANIFEST-\d+|\d+\.(?:log|ldb|sst|dbtmp))$/;

/**
 * Takes the directory of a store away from others' eyes, and says so. One that holds anything else may be meant for
 * others too: it stays as it is, and that is said.
 */
export async function restrictPermissions(path: string, log: Logger): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & 0o077) === 0) return;
  const isOwn = (await readdir(path)).every((name) => LEVELDB_FILES.test(name));
  const isDone = isOwn && (await chmod(path, mode & 0o700).then(...outcome));
  if (isDone) log.warn("Others could read the store; now they cannot", { path });
  else
    log.warn("Others can read the store, and the secrets in it: give it a directory of its own, mode 0700", { path });
}

const outcome = [() => true, () => false] as const;
