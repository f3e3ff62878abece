/** Reads how full file systems are, those of network volumes included, which may not respond. */
import { statfs } from "node:fs/promises";
import type { Clock } from "../../std/time/clock.ts";

export interface FileSystem {
  readonly availableBytes: number;
  readonly capacityBytes: number;
  readonly usedBytes: number;
  readonly inodesFree: number;
  readonly inodes: number;
  readonly inodesUsed: number;
}

/** A file system that does not respond for longer is left out. */
const TIMEOUT_MS = 1_000;

export class FileSystems {
  readonly #clock: Clock;
  readonly #statfs: typeof readFileSystem;
  /** Reads that have not ended, by path: each holds a thread, so none is begun twice. Bounded by the volumes. */
  readonly #pending = new Map<string, Promise<FileSystem | undefined>>();

  constructor(clock: Clock, statfs = readFileSystem) {
    this.#clock = clock;
    this.#statfs = statfs;
  }

  /** Undefined for a path that does not exist, or whose file system does not respond. */
  async read(path: string): Promise<FileSystem | undefined> {
    const reading = this.#pending.get(path) ?? this.#begin(path);
    const ended = new AbortController();
    const timeout = this.#clock.sleep(TIMEOUT_MS, ended.signal).catch(() => undefined);
    return await Promise.race([reading, timeout.then(() => undefined)]).finally(() => ended.abort());
  }

  #begin(path: string): Promise<FileSystem | undefined> {
    const reading = this.#statfs(path)
      .catch(() => undefined)
      .finally(() => this.#pending.delete(path));
    this.#pending.set(path, reading);
    return reading;
  }
}

export async function readFileSystem(path: string): Promise<FileSystem> {
  const { blocks, bsize, bavail, bfree, files, ffree } = await statfs(path);
  return {
    availableBytes: bavail * bsize,
    capacityBytes: blocks * bsize,
    usedBytes: (blocks - bfree) * bsize,
    inodesFree: ffree,
    inodes: files,
    inodesUsed: files - ffree,
  };
}
