import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Creates a directory and its missing parents, all with this mode. Resolves with the topmost one created, or with
 * undefined when all existed; rejects with the file system's error.
 *
 * Node's recursive mkdir never ends on a file system that returns ENOENT for both stat and mkdir of a directory, as
 * /proc does, and reports ENOENT where the cause is EROFS.
 */
export async function makeDirectory(path: string, mode: number): Promise<string | undefined> {
  const missing = await findMissingDirectories(path);
  for (const directory of missing) {
    try {
      await mkdir(directory, { mode });
    } catch (error) {
      // Another process may have created it meanwhile.
      if (!(await isDirectory(directory))) throw error;
    }
  }
  return missing[0];
}

/** The topmost first. */
async function findMissingDirectories(path: string): Promise<readonly string[]> {
  const missing: string[] = [];
  for (let directory = path; !(await exists(directory)); directory = dirname(directory)) {
    missing.unshift(directory);
    if (directory === dirname(directory)) break;
  }
  // mkdir rejects a path that exists and is no directory, with the system's error.
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
