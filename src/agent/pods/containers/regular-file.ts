/** Opens the agent's own files in directories that may be mounted into a container. */
import { constants } from "node:fs";
import { type FileHandle, open, readlink, realpath } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

/** O_NONBLOCK: opening a pipe without a writer would otherwise block the thread. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Opens a regular file below `root` for reading without following symbolic links; only `root` itself may contain links.
 * A pod that can write there, because it mounts the host's `/var/log`, could otherwise make the agent read other files:
 *
 *     /var/log/pods/ns_name_uid/c/0.log  ->  /etc/shadow
 *     /var/log/pods/ns_name_uid          ->  /somewhere/else
 *
 * The caller closes the file. Rejects when it is not a regular file, or outside of the directory.
 */
export async function openRegularFile(path: string, root: string): Promise<FileHandle> {
  const file = await open(path, OPEN_FLAGS);
  try {
    if (!(await file.stat()).isFile()) throw new Error(`${path} is not a regular file`);
    // Compares only the directory: the file may have been renamed in the meantime.
    const found = dirname(await readlink(`/proc/self/fd/${file.fd}`));
    if (found !== join(await realpath(root), relative(root, dirname(path)))) {
      throw new Error(`${path} is not in its directory: a symbolic link leads outside`);
    }
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The log of a run: `<root>/<pod>/<container>/<restart count>.log`. */
export function openLog(path: string): Promise<FileHandle> {
  return openRegularFile(path, join(path, "../../.."));
}
