/** A path inside a volume, resolved so that no link in the volume can lead out of it. */
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath } from "node:fs/promises";
import { join, sep } from "node:path";

/**
 * Opens `subPath` below `volume`, making missing directories. The handle names what was checked, whatever the volume's
 * users do to the names meanwhile; the caller closes it. Throws when the path leaves the volume.
 */
export async function openSubPath(volume: string, subPath: string): Promise<FileHandle> {
  const parts = subPath.split("/").filter((part) => part !== "" && part !== ".");
  if (subPath.startsWith("/") || parts.includes("..")) throw new Error(`subpath "${subPath}" leaves the volume`);
  const base = await realpath(volume);
  let current = base;
  for (const part of parts) {
    const next = join(current, part);
    const found = await lstat(next).catch(() => undefined);
    if (found === undefined) await mkdir(next, { mode: 0o750 });
    current = found?.isSymbolicLink() === true ? await realpath(next) : next;
    if (current !== base && !current.startsWith(base + sep)) throw new Error(`subpath "${subPath}" leaves the volume`);
  }
  const handle = await open(current, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  // Between the check and the opening a directory may have become a link: ask the kernel what was opened.
  const opened = await realpath(`/proc/self/fd/${handle.fd}`);
  if (opened !== base && !opened.startsWith(base + sep)) {
    await handle.close();
    throw new Error(`subpath "${subPath}" leaves the volume`);
  }
  return handle;
}
