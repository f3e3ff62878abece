/**
 * Writes files so that readers see all changes at once. A volume has a directory with a timestamp in its name, a link
 * `..data` to it, and for each top-level name a link through `..data`:
 *
 *     ..2026_11_21_03_32_07.1a2b/token    ..data -> ..2026_11_21_03_32_07.1a2b    token -> ..data/token
 *
 * An update writes a new directory and renames a new `..data` over the old one.
 */
import { randomInt } from "node:crypto";
import {
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { removeTree } from "../../../std/fs/remove-tree.ts";

const TIMESTAMPED = /^\.\.\d{4}_/;

export interface FileContent {
  readonly data: Uint8Array;
  /** Permission bits. */
  readonly mode: number;
  /** A user id; root's when absent. */
  readonly owner?: number;
}

/**
 * Paths are relative, below the volume; `validatePath` must have passed. `now` is in milliseconds. `finish` is called
 * before the files become visible, to set their ownership.
 */
export async function writeAtomically(
  target: string,
  payload: ReadonlyMap<string, FileContent>,
  now: number,
  finish: () => Promise<void> = async () => undefined,
): Promise<{ readonly changed: boolean }> {
  validateNoConflicts(payload);
  const previous = await readlink(join(target, "..data")).catch(() => undefined);
  if (previous !== undefined && (await isUnchanged(join(target, previous), payload))) {
    return { changed: false };
  }
  const stamp = new Date(now).toISOString().slice(0, 19).replace(/[-:T]/g, "_");
  // Ten digits, so that the link's length is constant.
  const name = `..${stamp}.${randomInt(1_000_000_000, 2 ** 32)}`;
  const directory = join(target, name);
  try {
    await writeFiles(directory, payload);
    await finish();
  } catch (error) {
    await removeTree(directory);
    throw error;
  }
  await rm(join(target, "..data_tmp"), { force: true });
  await symlink(name, join(target, "..data_tmp"));
  await rename(join(target, "..data_tmp"), join(target, "..data"));
  await linkNames(target, new Set([...payload.keys()].map((path) => path.split("/")[0] ?? path)));
  // Removes the previous directory, and those of interrupted writes.
  for (const other of await readdir(target)) {
    if (TIMESTAMPED.test(other) && other !== name) await removeTree(join(target, other));
  }
  return { changed: true };
}

async function writeFiles(directory: string, payload: ReadonlyMap<string, FileContent>): Promise<void> {
  await mkdir(directory);
  await chmod(directory, 0o755);
  let parent = directory;
  for (const [path, { data, mode, owner }] of payload) {
    const file = join(directory, path);
    if (dirname(file) !== parent) await mkdir(dirname(file), { recursive: true, mode: 0o755 });
    parent = dirname(file);
    await writeFile(file, data, { mode: 0o600 });
    if (owner !== undefined) await chown(file, owner, -1);
    // writeFile applies the process's umask, chmod does not.
    await chmod(file, mode);
  }
}

async function linkNames(target: string, wanted: ReadonlySet<string>): Promise<void> {
  const present = new Set((await readdir(target)).filter((name) => !name.startsWith("..")));
  for (const name of wanted) {
    if (!present.has(name)) await symlink(join("..data", name), join(target, name));
  }
  for (const name of present) {
    if (!wanted.has(name)) await removeTree(join(target, name));
  }
}

/** Additional mode bits, which fsGroup sets, are ignored. */
async function isUnchanged(directory: string, payload: ReadonlyMap<string, FileContent>): Promise<boolean> {
  const files = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  const paths = files.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
  if (paths.length !== payload.size) return false;
  for (const [path, { data, mode }] of payload) {
    const file = join(directory, path);
    const found = await readFile(file).catch(() => undefined);
    if (found === undefined || Buffer.compare(found, data) !== 0) return false;
    if (((await stat(file)).mode & mode & 0o777) !== (mode & 0o777)) return false;
  }
  return true;
}

/** Throws when a file's path is the directory of another file. */
function validateNoConflicts(payload: ReadonlyMap<string, FileContent>): void {
  for (const path of payload.keys()) {
    for (let above = dirname(path); above !== "."; above = dirname(above)) {
      if (payload.has(above)) throw new Error(`"${path}" cannot be created: "${above}" is a file`);
    }
  }
}

/** Throws when a path would leave the volume or clash with the writer's own names. */
export function validatePath(path: string): void {
  const parts = path.split("/");
  if (path === "" || path.startsWith("/") || parts.includes("..") || parts[0]?.startsWith("..") === true) {
    throw new Error(`invalid path "${path}": it must be relative and must not contain or start with ".."`);
  }
}
