/** Opens subPaths of volumes so that no symbolic link in the volume can lead out of it. */
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath } from "node:fs/promises";
import { join, relative, sep } from "node:path";

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Linux' O_PATH: a handle on any file, also a socket, without opening it for reading. */
const OPEN_PATH = 0o10000000 | constants.O_NOFOLLOW;

/**
 * Opens `subPath` below `volume`, creating missing directories with the mode of the volume. The handle refers to the
 * file that was checked, even when the volume's users rename it meanwhile; the caller closes it. Throws when the path
 * leaves the volume.
 *
 * Symbolic links are resolved first. Then each name is opened through the handle of its directory without following
 * links: a name that has become a link meanwhile is an error:
 *
 *     volume/current/logs  ->  volume/v2/logs  ->  open "v2" in volume, open or create "logs" in that
 */
export async function openSubPath(volume: string, subPath: string): Promise<FileHandle> {
  const parts = subPath.split("/").filter((part) => part !== "" && part !== ".");
  if (subPath.startsWith("/") || parts.includes("..")) throw newEscapeError(subPath);
  const base = await realpath(volume);
  const names = await resolveNames(base, parts, subPath);
  let handle = await open(base, names.length === 0 ? OPEN_PATH : DIRECTORY);
  try {
    const mode = (await handle.stat()).mode & 0o7777;
    for (const [index, part] of names.entries()) {
      const next = await openNext(handle, part, index === names.length - 1, mode);
      await handle.close();
      handle = next;
    }
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The names to open: the resolved existing ones, then those to create. */
async function resolveNames(base: string, parts: readonly string[], subPath: string): Promise<readonly string[]> {
  let current = base;
  for (const [index, part] of parts.entries()) {
    const next = join(current, part);
    const found = await lstat(next).catch(() => undefined);
    if (found === undefined) return [...splitNames(base, current), ...parts.slice(index)];
    current = found.isSymbolicLink() ? await realpath(next) : next;
    if (current !== base && !current.startsWith(base + sep)) throw newEscapeError(subPath);
  }
  return splitNames(base, current);
}

function splitNames(base: string, path: string): readonly string[] {
  return relative(base, path)
    .split(sep)
    .filter((name) => name !== "");
}

/** Opens a name in an open directory; creates a missing directory. */
async function openNext(directory: FileHandle, name: string, isLast: boolean, mode: number): Promise<FileHandle> {
  const path = `/proc/self/fd/${directory.fd}/${name}`;
  const made = await mkdir(path, { mode: 0o750 }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST" || error.code === "EROFS") return false;
      throw error;
    },
  );
  const handle = await open(path, isLast && !made ? OPEN_PATH : DIRECTORY);
  try {
    // By its handle, since the name may be a link by now; mkdir applies the process's umask.
    if (made) await handle.chmod(mode);
    if ((await handle.stat()).isSymbolicLink()) throw new Error(`"${name}" became a link`);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function newEscapeError(subPath: string): Error {
  return new Error(`subpath "${subPath}" leaves the volume`);
}
