import { copyFile, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../../std/log/logger.ts";
import type { IncompleteLog } from "./verify.ts";

/** LevelDB's repair uses this name too. */
const DIRECTORY = "lost";
const COPIES_MAX = 4;

/** Copies a log to the directory `lost` before LevelDB replaces it, keeps the newest copies, and logs that. */
export async function keepCopy(path: string, { name, offset, revision }: IncompleteLog, log: Logger): Promise<void> {
  const directory = join(path, DIRECTORY);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await copyFile(join(path, name), join(directory, name));
  // The numbers of logs grow.
  const copies = (await readdir(directory)).filter((copy) => /^\d+\.log$/.test(copy)).sort();
  for (const copy of copies.slice(0, -COPIES_MAX)) await rm(join(directory, copy));
  log.warn(
    "The last record of the write-ahead log is incomplete, as after a power cut; it is dropped, which loses no " +
      "acknowledged write unless the disk lost it. A copy of the log is kept",
    { path, log: name, offset, copy: join(directory, name), ...(revision !== undefined && { revision }) },
  );
}
