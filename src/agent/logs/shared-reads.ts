/** Reads of log files by many followers: those that request the same at the same time share one system call. */
import type { Stats } from "node:fs";
import { type FileHandle, lstat } from "node:fs/promises";

/** Reads the attributes of files; undefined when there is none at the path. */
export interface FileStats {
  stat(path: string): Promise<Stats | undefined>;
}

export class SharedReads implements FileStats {
  readonly #stats = new Map<string, Promise<Stats | undefined>>();
  readonly #reads = new Map<string, Promise<Buffer>>();

  /** May be as old as the first of the calls that share it. */
  stat(path: string): Promise<Stats | undefined> {
    return share(this.#stats, path, () => statIfPresent(path));
  }

  /** Fewer bytes than `length` only at the end of the file. `file` identifies the one that the handle is open for. */
  read(handle: FileHandle, file: string, position: number, length: number): Promise<Buffer> {
    return share(this.#reads, `${file} ${position} ${length}`, async () => {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, position);
      return buffer.subarray(0, bytesRead);
    });
  }
}

export function statIfPresent(path: string): Promise<Stats | undefined> {
  return lstat(path).catch(() => undefined);
}

function share<T>(pending: Map<string, Promise<T>>, key: string, start: () => Promise<T>): Promise<T> {
  const started = pending.get(key);
  if (started !== undefined) return started;
  const next = start().finally(() => pending.delete(key));
  pending.set(key, next);
  return next;
}
