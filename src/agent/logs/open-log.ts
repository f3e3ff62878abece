/** One open file of a container's log. */
import type { Stats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { openLog } from "../pods/containers/regular-file.ts";
import { COMPRESSED, listRotatedLogs, type RotatedLog, readStamp } from "./rotated-logs.ts";
import type { FileStats, SharedReads } from "./shared-reads.ts";

const CHUNK_BYTES = 64 * 1024;
/** A longer line is skipped. The runtime splits lines at 16 KiB. */
const LINE_BYTES_MAX = 1024 * 1024;
/** A listed log may be compressed, and so renamed, before it is opened. */
const OPEN_ATTEMPTS = 5;
const NEWLINE = 0x0a;
const EMPTY = Buffer.alloc(0);

export class OpenLog implements AsyncDisposable {
  readonly #file: FileHandle;
  readonly #path: string;
  /** Device and inode. */
  readonly #id: string;
  #position = 0;
  /** The start of a line whose end is not written yet. */
  #rest: Buffer = EMPTY;

  private constructor(file: FileHandle, path: string, id: string) {
    this.#file = file;
    this.#path = path;
    this.#id = id;
  }

  /** The caller closes it. */
  static async open(path: string): Promise<OpenLog> {
    const file = await openLog(path);
    return new OpenLog(file, path, identify(await file.stat()));
  }

  get isCompressed(): boolean {
    return this.#path.endsWith(COMPRESSED);
  }

  /** In the file. */
  get position(): number {
    return this.#position;
  }

  /** The start of an incomplete last line. */
  get rest(): Buffer {
    return this.#rest;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file.close();
  }

  /** When it was rotated; undefined while it is the current log. */
  stamp(current: string): Promise<string | undefined> {
    return readStamp(this.#file.fd, current);
  }

  /** Bytes that are not read yet, whether it is the one at `current`, and when it was written last. */
  async check(
    current: string,
    stats: FileStats,
  ): Promise<{ readonly unread: number; readonly isAtPath: boolean; readonly written: number }> {
    const found = await stats.stat(current);
    const isAtPath = found !== undefined && identify(found) === this.#id;
    // The shared statistics may be older than what has been read.
    const { size, mtimeMs } = isAtPath && found.size >= this.#position ? found : await this.#file.stat();
    if (size < this.#position) {
      // Something has truncated it: what is in it now is new.
      this.#position = 0;
      this.#rest = EMPTY;
    }
    return { unread: size - this.#position, isAtPath, written: mtimeMs };
  }

  /** Reads at most `unread` bytes; returns the whole lines, undefined at the end of the file. */
  async read(unread: number, reads: SharedReads): Promise<Buffer | undefined> {
    const chunk = await reads.read(this.#file, this.#id, this.#position, Math.min(CHUNK_BYTES, unread));
    if (chunk.length === 0) return undefined;
    this.#position += chunk.length;
    return this.#takeLines(chunk);
  }

  async *decompress(signal: AbortSignal): AsyncGenerator<Buffer> {
    const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
    // The loop below gets errors of both.
    pipeline(this.#file.createReadStream({ start: 0, autoClose: false }), gunzip, () => {});
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      if (signal.aborted) return;
      const lines = this.#takeLines(chunk);
      if (lines.length > 0) yield lines;
    }
  }

  /** Moves to the last `lines` lines. Reads backwards. */
  async seekTail(lines: number): Promise<void> {
    this.#position = await this.#findTail(lines);
  }

  async #findTail(lines: number): Promise<number> {
    const { size } = await this.#file.stat();
    if (lines <= 0) return size;
    let found = 0;
    for (let end = size; end > 0; ) {
      const length = Math.min(CHUNK_BYTES, end);
      const { buffer } = await this.#file.read(Buffer.alloc(length), 0, length, end - length);
      for (let index = length - 1; index >= 0; index--) {
        // A newline at the end of the file ends the last line and starts none.
        if (buffer[index] !== NEWLINE || end - length + index === size - 1) continue;
        found += 1;
        if (found === lines) return end - length + index + 1;
      }
      end -= length;
    }
    return 0;
  }

  #takeLines(chunk: Buffer): Buffer {
    const all = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const end = all.lastIndexOf(NEWLINE) + 1;
    const isTooLong = end === 0 && all.length >= LINE_BYTES_MAX;
    // A copy, so that it does not keep the whole chunk.
    this.#rest = isTooLong || end === all.length ? EMPTY : Buffer.from(all.subarray(end));
    return all.subarray(0, end);
  }
}

function identify({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}

/**
 * Opens the log that follows one that was rotated at `stamp`: the next rotated one, else the current one; undefined
 * when there is none yet. Without a stamp, as when another program has renamed the log, it is the current one.
 */
export async function openNext(path: string, stamp: string | undefined): Promise<OpenLog | undefined> {
  for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
    const later = await findLater(path, stamp);
    const opened = await OpenLog.open(later?.path ?? path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      return undefined;
    });
    if (later !== undefined && opened !== undefined) return opened;
    // The current log may have been rotated just before it was opened.
    if (later === undefined && (await findLater(path, stamp)) === undefined) return opened;
    await opened?.[Symbol.asyncDispose]();
  }
  return undefined;
}

async function findLater(path: string, stamp: string | undefined): Promise<RotatedLog | undefined> {
  if (stamp === undefined) return undefined;
  return (await listRotatedLogs(path)).find((each) => each.stamp > stamp);
}
