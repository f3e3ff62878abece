import { readFile } from "node:fs/promises";

/** Reads the file of a flag. The error names the flag and the file. */
export async function readFlagFile(flag: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : String(cause);
    throw new Error(`Cannot read ${flag}="${path}": ${reason}`, { cause });
  }
}
