import { readFile } from "node:fs/promises";

/** The content of a file that a flag names. Throws, naming both, when it cannot be read. */
export async function readFlagFile(flag: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : String(cause);
    throw new Error(`Cannot read ${flag}="${path}": ${reason}`, { cause });
  }
}
