/** A path inside a volume, resolved so that no link in the volume can lead out of it. */
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath } from "node:fs/promises";
import { join, relative, sep } from "node:path";

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Linux' O_PATH: a handle on what is there, be it a socket, without opening it for reading. */
const OPEN_PATH = 0o10000000 | constants.O_NOFOLLOW;

/**
 * Opens `subPath` below `volume`, making missing directories, as open as the volume itself. The handle names what was
 * checked, whatever the volume's users do to the names meanwhile; the caller closes it. Throws when the path leaves the
 * volume.
 *
 * Links are resolved first. The result is then walked from handle to handle without following any link, so that a name
 * which becomes a link in between ends the walk rather than leading it astray:
 *
 *     volume/current/logs  ->  volume/v2/logs  ->  open "v2" in volume, open or make "logs" in that
 */
export async function openSubPath(volume: string, subPath: string): Promise<FileHandle> {
  const parts = subPath.split("/").filter((part) => part !== "" && part !== ".");
  if (subPath.startsWith("/") || parts.includes("..")) throw newEscapeError(subPath);
  const base = await realpath(volume);
  const names = await resolveNames(base, parts, subPath);
  let handle = await open(base, names.length === 0 ? OPEN_PATH : DIRECTORY);
  try {
    const mode = (await handle.stat()).mode & 0o2777;
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

/** The names to walk: those that exist without links, and after them those to be made. */
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

/** Opens one name in a directory that is open; makes a missing one. */
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
    // By its handle: the name may be a link by now. At creation the process's umask takes bits away.
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
