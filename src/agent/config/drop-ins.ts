import { readdirSync } from "node:fs";
import { join } from "node:path";
import { FlagError } from "../../flags/flag.ts";

const SUFFIX = ".conf";

/**
 * The drop-in files of a directory in the order they apply: by name, byte by byte. Other files and directories are
 * skipped, so that editors' backups and README files have no effect.
 */
export function listDropIns(directory: string): readonly string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory() && entry.name.endsWith(SUFFIX))
      .map(({ name }) => name)
      .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      .map((name) => join(directory, name));
  } catch (error) {
    throw new FlagError([`--config-dir=${JSON.stringify(directory)}: cannot be read: ${(error as Error).message}`]);
  }
}
