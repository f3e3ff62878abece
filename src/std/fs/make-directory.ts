import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Makes a directory and those above it that are missing, all of this mode. Resolves with the topmost one made, or with
 * undefined when all were there; rejects as the file system does.
 *
 * Node's own way never ends on a file system that says of a directory that it cannot find it and will not make it, as
 * /proc does, and says "no such file" where the truth is "read-only".
 */
export async function makeDirectory(path: string, mode: number): Promise<string | undefined> {
  const missing = await missingDirectories(path);
  for (const directory of missing) {
    try {
      await mkdir(directory, { mode });
    } catch (error) {
      // Somebody else may have been faster.
      if (!(await isDirectory(directory))) throw error;
    }
  }
  return missing[0];
}

/** From the top down. */
async function missingDirectories(path: string): Promise<readonly string[]> {
  const missing: string[] = [];
  for (let directory = path; !(await exists(directory)); directory = dirname(directory)) {
    missing.unshift(directory);
    if (directory === dirname(directory)) break;
  }
  // What is there and no directory is refused by mkdir, in the system's words.
  return missing.length === 0 && !(await isDirectory(path)) ? [path] : missing;
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    (error: unknown) => (error as NodeJS.ErrnoException).code !== "ENOENT",
  );
}

async function isDirectory(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
