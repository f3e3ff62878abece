/** Measures how much disk space directories use. A result is kept for a while, since measuring reads every entry. */
import { execFile } from "node:child_process";
import type { Stats } from "node:fs";
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Clock } from "../../std/time/clock.ts";

export interface DirectorySize {
  readonly usedBytes: number;
  readonly inodesUsed: number;
}

interface Measurement {
  /** The last result; undefined before the first one, and for a directory that does not exist. */
  size: DirectorySize | undefined;
  /** On the monotonic clock. */
  measuredAt: number;
  /** In progress. */
  running: Promise<void> | undefined;
}

/** A directory that takes longer is reported with its size before, and the next time with the new one. */
const WAIT_MS = 1_000;
/** Larger directories are measured by `du`, which takes a tenth of the CPU time. */
const ENTRIES_MAX = 2_000;
/** The unit of `st_blocks`. */
const BLOCK_BYTES = 512;

export class DirectorySizes {
  readonly #clock: Clock;
  readonly #measure: typeof measureDirectory;
  /** By path; `retain` bounds it. */
  readonly #measurements = new Map<string, Measurement>();
  /** One directory is measured at a time. */
  #last: Promise<void> = Promise.resolve();

  constructor(clock: Clock, measure = measureDirectory) {
    this.#clock = clock;
    this.#measure = measure;
  }

  /** Undefined for a directory that does not exist, or has not been measured in time. */
  async read(path: string, maxAgeMs: number): Promise<DirectorySize | undefined> {
    const known = this.#measurements.get(path);
    if (known !== undefined && this.#clock.monotonic() - known.measuredAt < maxAgeMs) return known.size;
    const measurement = known ?? { size: undefined, measuredAt: Number.NEGATIVE_INFINITY, running: undefined };
    this.#measurements.set(path, measurement);
    measurement.running ??= this.#begin(path, measurement);
    const ended = new AbortController();
    const timeout = this.#clock.sleep(WAIT_MS, ended.signal).catch(() => undefined);
    await Promise.race([measurement.running, timeout]).finally(() => ended.abort());
    return measurement.size;
  }

  /** Drops the sizes of all other paths. */
  retain(paths: ReadonlySet<string>): void {
    for (const path of this.#measurements.keys()) if (!paths.has(path)) this.#measurements.delete(path);
  }

  #begin(path: string, measurement: Measurement): Promise<void> {
    const running = this.#last.then(async () => {
      measurement.size = await this.#measure(path).catch(() => undefined);
      measurement.measuredAt = this.#clock.monotonic();
      measurement.running = undefined;
    });
    this.#last = running;
    return running;
  }
}

/** Counts hard links once, and neither holes nor other file systems, as `du` does. */
export async function measureDirectory(path: string, entriesMax = ENTRIES_MAX): Promise<DirectorySize> {
  const root = await lstat(path);
  const sum = { usedBytes: root.blocks * BLOCK_BYTES, inodesUsed: 1 };
  const linked = new Set<number>();
  const add = (stats: Stats): void => {
    if (stats.nlink > 1 && !stats.isDirectory()) {
      if (linked.has(stats.ino)) return;
      linked.add(stats.ino);
    }
    sum.usedBytes += stats.blocks * BLOCK_BYTES;
    sum.inodesUsed++;
  };
  const directories = [path];
  for (const directory of directories) {
    for await (const { name } of await opendir(directory)) {
      if (sum.inodesUsed >= entriesMax) return await runDu(path);
      const entry = join(directory, name);
      // Files may be removed while they are counted.
      const stats = await lstat(entry).catch(() => undefined);
      if (stats === undefined || stats.dev !== root.dev) continue;
      add(stats);
      if (stats.isDirectory()) directories.push(entry);
    }
  }
  return sum;
}

const execFileAsync = promisify(execFile);

async function runDu(path: string): Promise<DirectorySize> {
  const [kibibytes, inodesUsed] = await Promise.all([runDuOnce(["-skx", path]), runDuOnce(["-sx", "--inodes", path])]);
  return { usedBytes: kibibytes * 1024, inodesUsed };
}

/** du fails for files that were removed meanwhile; its result is valid all the same. */
async function runDuOnce(args: readonly string[]): Promise<number> {
  const { stdout } = await execFileAsync("du", args).catch((error: { readonly stdout?: string }) => {
    if (!/^\d+\t/.test(error.stdout ?? "")) throw error;
    return { stdout: error.stdout ?? "" };
  });
  return Number.parseInt(stdout, 10);
}
