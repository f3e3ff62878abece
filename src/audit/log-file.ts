/** The file of the audit log, rotated by size; old files are removed by count and age, and compressed. */
import { createReadStream, createWriteStream, type Dirent } from "node:fs";
import { type FileHandle, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { makeDirectory } from "../std/fs/make-directory.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";

export interface LogFileOptions {
  readonly path: string;
  /** Megabytes (2^20 bytes) at which the file is rotated; 0: 100, as in Kubernetes. */
  readonly maxSizeMb: number;
  /** Rotated files that are kept; 0: all. */
  readonly maxBackups: number;
  /** Days for which rotated files are kept; 0: for ever. */
  readonly maxAgeDays: number;
  readonly compress: boolean;
}

interface Pending {
  readonly text: string;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const MB = 2 ** 20;
const DEFAULT_SIZE_MB = 100;
const DAY_MS = 86_400_000;
const FILE_MODE = 0o600;
/** The size of the buffer in which lines are encoded. It is reused: new buffers make V8 collect earlier. */
const BUFFER_BYTES = 256 * 1024;
/** Of a character of UTF-16 in UTF-8. */
const CHARACTER_BYTES_MAX = 3;

/** Appends lines in order: those that wait while the disk is busy are written at once. */
export class LogFile implements AsyncDisposable {
  readonly #options: LogFileOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  #handle: FileHandle;
  #bytes: number;
  /** A write failed in its middle: the next one begins on a new line. */
  #isTorn = false;
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  #pending: Pending[] = [];
  #writing: Promise<void> | undefined;
  #cleaning: Promise<void> = Promise.resolve();

  private constructor(options: LogFileOptions, deps: { clock: Clock; log: Logger }, handle: FileHandle, bytes: number) {
    this.#options = options;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#handle = handle;
    this.#bytes = bytes;
  }

  /** Creates the file and its directory. Rejects with the file system's error. */
  static async open(options: LogFileOptions, deps: { clock: Clock; log: Logger }): Promise<LogFile> {
    await makeDirectory(dirname(options.path), 0o700);
    const handle = await open(options.path, "a", FILE_MODE);
    const file = new LogFile(options, deps, handle, (await handle.stat()).size);
    file.#clean();
    return file;
  }

  /** Resolves when the text is in the file. */
  append(text: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#pending.push({ text, resolve, reject });
    this.#writing ??= this.#writeAll();
    return promise;
  }

  async #writeAll(): Promise<void> {
    // Other events of this turn of the event loop join the first write.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      const text = `${this.#isTorn ? "\n" : ""}${batch.map((each) => each.text).join("")}`;
      try {
        await this.#write(this.#encode(text));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    // In the same turn as the last look at what waits: nothing is added in between.
    this.#writing = undefined;
  }

  /** The result is valid until the next call. */
  #encode(text: string): Buffer {
    if (text.length * CHARACTER_BYTES_MAX > this.#buffer.length) return Buffer.from(text);
    return this.#buffer.subarray(0, this.#buffer.write(text));
  }

  async #write(bytes: Buffer): Promise<void> {
    const max = MB * (this.#options.maxSizeMb || DEFAULT_SIZE_MB);
    if (this.#bytes > 0 && this.#bytes + bytes.length > max) await this.#rotate();
    this.#isTorn = true;
    for (let start = 0; start < bytes.length; ) {
      const { bytesWritten } = await this.#handle.write(bytes, start);
      start += bytesWritten;
      this.#bytes += bytesWritten;
    }
    this.#isTorn = false;
  }

  async #rotate(): Promise<void> {
    const { path } = this.#options;
    await rename(path, await this.#nextBackup());
    const next = await open(path, "a", FILE_MODE);
    await this.#handle.close();
    this.#handle = next;
    this.#bytes = 0;
    this.#clean();
  }

  /** A name with the present time, or a later one if that is taken. */
  async #nextBackup(): Promise<string> {
    const { path } = this.#options;
    const taken = new Set(await readdir(dirname(path)));
    for (let at = this.#clock.now(); ; at++) {
      const name = `${this.#prefix}${fileTime(at)}${extname(path)}`;
      if (!taken.has(name) && !taken.has(`${name}.gz`)) return join(dirname(path), name);
    }
  }

  /** `audit-` of `audit.log`. */
  get #prefix(): string {
    const { path } = this.#options;
    return `${basename(path, extname(path))}-`;
  }

  #clean(): void {
    this.#cleaning = this.#cleaning
      .then(() => this.#cleanUp())
      .catch((error: unknown) => this.#log.error("Failed to clean up rotated audit logs", error));
  }

  async #cleanUp(): Promise<void> {
    const { path, maxBackups, maxAgeDays, compress } = this.#options;
    if (maxBackups === 0 && maxAgeDays === 0 && !compress) return;
    const folder = dirname(path);
    const backups = (await readdir(folder, { withFileTypes: true })).flatMap((entry) => this.#toBackup(entry));
    backups.sort((a, b) => b.at - a.at);
    const oldest = maxAgeDays === 0 ? 0 : this.#clock.now() - maxAgeDays * DAY_MS;
    for (const [index, { name, at }] of backups.entries()) {
      const file = join(folder, name);
      if ((maxBackups > 0 && index >= maxBackups) || at < oldest) await rm(file, { force: true });
      else if (compress && !name.endsWith(".gz")) await gzipFile(file);
    }
  }

  #toBackup(entry: Dirent): readonly { readonly name: string; readonly at: number }[] {
    const { name } = entry;
    const extension = extname(this.#options.path);
    const plain = name.endsWith(".gz") ? name.slice(0, -3) : name;
    if (!entry.isFile() || !plain.startsWith(this.#prefix) || !plain.endsWith(extension)) return [];
    const at = parseFileTime(plain.slice(this.#prefix.length, plain.length - extension.length));
    return at === undefined ? [] : [{ name, at }];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing;
    await this.#cleaning;
    await this.#handle.close();
  }
}

async function gzipFile(path: string): Promise<void> {
  const temporary = `${path}.gz.tmp`;
  await pipeline(createReadStream(path), createGzip(), createWriteStream(temporary, { mode: FILE_MODE }));
  await rename(temporary, `${path}.gz`);
  await rm(path, { force: true });
}

/** `2026-11-22T13-00-00.000`, in UTC. */
function fileTime(at: number): string {
  return new Date(at).toISOString().slice(0, -1).replaceAll(":", "-");
}

function parseFileTime(text: string): number | undefined {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})$/.exec(text);
  if (match === null) return undefined;
  const [, day, hour, minute, second] = match;
  const at = Date.parse(`${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(at) ? undefined : at;
}
