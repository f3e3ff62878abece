import { copyFile, mkdir, readdir, rm } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Logger } from "../../../std/log/logger.ts";
import type { IncompleteLog } from "./verify.ts";

/** LevelDB's repair uses this name too. */
const DIRECTORY = "lost";
const COPIES_MAX = 4;

/** Copies a log to the directory `lost` before LevelDB replaces it, keeps the newest copies, and logs that. */
export async function keepCopy(path: string, { name, offset, revision }: IncompleteLog, log: Logger): Promise<void> {
  const copy = await copyFileAside(path, name);
  log.warn(
    "The last record of the write-ahead log is incomplete, as after a power cut; it is dropped, which loses no " +
      "acknowledged write unless the disk lost it. A copy of the log is kept",
    { path, log: name, offset, copy, ...(revision !== undefined && { revision }) },
  );
}

/** Copies a file to the directory `lost`, which keeps the newest copies of each type. Resolves with the copy's path. */
export async function copyFileAside(path: string, name: string): Promise<string> {
  const directory = join(path, DIRECTORY);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await copyFile(join(path, name), join(directory, name));
  // The numbers of files grow.
  const type = extname(name);
  const copies = (await readdir(directory)).filter((copy) => /^\d+\./.test(copy) && extname(copy) === type).sort();
  for (const copy of copies.slice(0, -COPIES_MAX)) await rm(join(directory, copy));
  return join(directory, name);
}
