/** File permissions of the store, which contains Secrets. */
import { chmod, readdir, stat } from "node:fs/promises";
import type { Logger } from "../../std/log/logger.ts";

/** Names of the files that LevelDB and this engine create. */
const LEVELDB_FILES = /^(?:CURRENT|LOCK|LOG|LOG\.old|MANIFEST-\d+|\d+\.(?:log|ldb|sst|dbtmp)|REVISION|RESERVE|lost)$/;

/**
 * Removes other users' access to the directory of a store, and logs that. A directory with other files may be shared on
 * purpose: it is not changed, and a warning is logged.
 */
export async function restrictPermissions(path: string, log: Logger): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & 0o077) === 0) return;
  const isOwn = (await readdir(path)).every((name) => LEVELDB_FILES.test(name));
  const isDone = isOwn && (await chmod(path, mode & 0o700).then(...outcome));
  if (isDone) log.warn("Removed other users' access to the directory of the store", { path });
  else
    log.warn("Other users can read the store and its Secrets; move it to a directory of its own with mode 0700", {
      path,
    });
}

const outcome = [() => true, () => false] as const;
