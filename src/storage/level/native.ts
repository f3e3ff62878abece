/**
 * Loads the native code of LevelDB. From the sources it comes from the files of the npm package. In the single file the
 * build replaces the loader of the package by `loadAddon` with the addon's bytes. A shared library is loaded from a
 * file only, so the bytes are written to an unnamed one (O_TMPFILE), which is deleted when it is closed.
 */
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Linux's __O_TMPFILE with O_DIRECTORY, which differs between architectures. Node has no name for it. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

const candidates = new Set<string>();

/** Adds a writable directory to try first. Call before the addon is loaded. */
export function addAddonDirectory(directory: string): void {
  candidates.add(directory);
}

export interface AddonLoader {
  /** Directories to try in order; when absent, the added ones, /run, /dev/shm, the temporary and the current one. */
  readonly directories?: readonly string[];
  /** For tests: `process.dlopen`. */
  readonly dlopen?: (module: { exports: unknown }, path: string) => void;
}

/** Returns the exports of the addon. Throws an Error with each directory that was tried and its failure. */
export function loadAddon(
  bytes: Uint8Array,
  { directories, dlopen = (module, path) => process.dlopen(module, path) }: AddonLoader = {},
): unknown {
  const failures: string[] = [];
  for (const directory of directories ?? [...new Set([...candidates, "/run", "/dev/shm", tmpdir(), process.cwd()])]) {
    for (const attempt of [loadUnnamed, loadNamed]) {
      const module = { exports: {} as unknown };
      try {
        attempt(directory, bytes, (path) => dlopen(module, path));
        return module.exports;
      } catch (error) {
        failures.push(`${directory}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
  throw new Error(
    "Cannot load the embedded store's native code: no directory allows a file to be written and executed " +
      `(TMPDIR may name one that is not mounted noexec). Tried ${[...new Set(failures)].join("; ")}`,
  );
}

function loadUnnamed(directory: string, bytes: Uint8Array, load: (path: string) => void): void {
  const file = openSync(directory, O_TMPFILE | constants.O_RDWR, 0o700);
  try {
    writeFileSync(file, bytes);
    load(`/proc/self/fd/${file}`);
  } finally {
    closeSync(file);
  }
}

/** For file systems without O_TMPFILE and hosts without /proc: a private directory that is removed at once. */
function loadNamed(directory: string, bytes: Uint8Array, load: (path: string) => void): void {
  const home = mkdtempSync(join(directory, ".svc-addon-"));
  try {
    const path = join(home, "addon.node");
    writeFileSync(path, bytes, { mode: 0o700, flag: "wx" });
    load(path);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
