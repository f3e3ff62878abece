import { readFile, stat } from "node:fs/promises";

/** Certificates, keys, tokens; a wrong path must not exhaust the memory, or stop the server when it is read again. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Of files that are parsed as YAML. */
export const CONFIGURATION_BYTES_MAX = 3 * 1024 * 1024;

/** Reads the file of a flag. The error names the flag and the file. */
export async function readFlagFile(flag: string, path: string, bytesMax = FILE_BYTES_MAX): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > bytesMax) throw new Error(`it is larger than ${bytesMax} bytes`);
    return await readFile(path, "utf8");
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : String(cause);
    throw new Error(`Cannot read ${flag}="${path}": ${reason}`, { cause });
  }
}
