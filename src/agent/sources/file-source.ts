/** Reads manifests of a directory, or one file: at the start, after a change, and periodically. */
import { type FSWatcher, watch } from "node:fs";
import { lstat, readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type ManifestText, manifestBytesMax, manifestsBytesMax } from "./manifest.ts";

export interface FileSourceOptions {
  /** A directory or a file; it may be created later. */
  readonly path: string;
  readonly periodMs: number;
  readonly clock: Clock;
  /** The next texts are read when it has finished. */
  readonly onTexts: (texts: readonly ManifestText[]) => MaybePromise<void>;
  readonly signal: AbortSignal;
}

/** Delay before reading a changed file, which may be written in several steps. */
const SETTLE_MS = 50;

/** Backup and swap files of editors, temporary files of package managers. */
const IGNORED_NAMES =
  /^\.|^#.*#$|~$|\.(sw[a-z]|bak|backup|old|orig|rej|tmp|dpkg-(old|new|dist|tmp)|rpm(save|new|orig))$/i;

/** Runs until the signal aborts. Never rejects. */
export async function watchFiles(options: FileSourceOptions): Promise<void> {
  const { path, periodMs, clock, signal } = options;
  while (!signal.aborted) {
    const changed = new AbortController();
    // Watching starts before reading, so that no change is missed.
    const watchers = [path, dirname(path)].flatMap((each) => startWatching(each, path, () => changed.abort()));
    try {
      const texts = await readManifestFiles(path);
      if (!signal.aborted) await options.onTexts(texts);
      await clock.sleep(periodMs, AbortSignal.any([signal, changed.signal])).catch(() => undefined);
      if (!signal.aborted && changed.signal.aborted) await clock.sleep(SETTLE_MS, signal).catch(() => undefined);
    } finally {
      for (const watcher of watchers) watcher.close();
    }
  }
}

/** Empty while the path does not exist; the next period tries again. */
function startWatching(directory: string, path: string, onChange: () => void): readonly FSWatcher[] {
  try {
    const watcher = watch(directory, { persistent: false }, (_event, name) => {
      if (directory === path ? !IGNORED_NAMES.test(name ?? "") : name === basename(path)) onChange();
    });
    watcher.on("error", () => watcher.close());
    return [watcher];
  } catch {
    return [];
  }
}

/** Sorted by name. Never rejects: a file that cannot be read has a `problem`. */
export async function readManifestFiles(path: string): Promise<readonly ManifestText[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [await readFileText(path)];
    const names = (await readdir(path)).filter((name) => !IGNORED_NAMES.test(name)).sort();
    const texts: ManifestText[] = [];
    let left = manifestsBytesMax;
    for (const name of names) {
      const file = join(path, name);
      const stats = await stat(file).catch(() => undefined);
      // Ignores subdirectories; reports a dangling symbolic link.
      if (stats?.isDirectory() === true) continue;
      if (stats === undefined && (await lstat(file).catch(() => undefined)) === undefined) continue;
      const text = await readFileText(file, left);
      if (text.content instanceof Uint8Array) left -= text.content.length;
      texts.push(text);
    }
    return texts;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    return [{ name: path, content: { problem: `cannot be read: ${(error as Error).message}` } }];
  }
}

async function readFileText(file: string, left = manifestsBytesMax): Promise<ManifestText> {
  try {
    const stats = await stat(file);
    if (!stats.isFile()) return { name: file, content: { problem: "is not a regular file" } };
    if (stats.size > manifestBytesMax) {
      return { name: file, content: { problem: `larger than ${manifestBytesMax} bytes` } };
    }
    if (stats.size > left) {
      return {
        name: file,
        content: { problem: `larger than ${manifestsBytesMax} bytes with the manifests before it` },
      };
    }
    return { name: file, content: await readFile(file) };
  } catch (error) {
    return { name: file, content: { problem: `cannot be read: ${(error as Error).message}` } };
  }
}
