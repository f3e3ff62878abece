/** Files of the agent's own, in directories that a container may have been given. */
import { constants } from "node:fs";
import { type FileHandle, open, readlink, realpath } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

/** A pipe that nobody writes to would otherwise hold the thread that opens it. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Opens a file for reading that lies, without any link on the way, where it says below `root`; parts of `root` may
 * be links. Whoever can write there, as a pod with `/var/log` of the host, could otherwise have the agent read for them
 *
 *     /var/log/pods/ns_name_uid/c/0.log  ->  /etc/shadow
 *     /var/log/pods/ns_name_uid          ->  /somewhere/else
 *
 * The caller closes it. Rejects with a sentence where it is no plain file, or elsewhere.
 */
export async function openRegularFile(path: string, root: string): Promise<FileHandle> {
  const file = await open(path, OPEN_FLAGS);
  try {
    if (!(await file.stat()).isFile()) throw new Error(`${path} is not a plain file`);
    // Of the directory alone: the file may have got another name meanwhile.
    const found = dirname(await readlink(`/proc/self/fd/${file.fd}`));
    if (found !== join(await realpath(root), relative(root, dirname(path)))) {
      throw new Error(`${path} is not in its directory: a link leads elsewhere`);
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
