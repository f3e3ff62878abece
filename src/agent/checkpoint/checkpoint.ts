/**
 * An encrypted key-value store of the objects that a node needs to start its pods while the API server is unavailable:
 * the pods, and the objects that they refer to. Each value has its own file, which is written atomically when it
 * changes.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { canonicalJson } from "../../schema/json/canonical-json.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { KEY_BYTES, seal, unseal } from "./seal.ts";

export interface CheckpointOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Coalesces bursts of changes: a pod that starts gets several statuses. */
const SETTLE_MS = 1_000;
const RETRY_MS = 30_000;
const SUFFIX = ".sealed";
const KEY_FILE = "key";

export class Checkpoint implements AsyncDisposable {
  readonly #options: CheckpointOptions;
  readonly #key: Buffer;
  /** Digests of the files' values, by key; bounded by the pods of the node and the objects that they refer to. */
  readonly #written = new Map<string, string>();
  /** Values to write, undefined to delete; only the newest. */
  readonly #pending = new Map<string, { readonly value: unknown } | undefined>();
  /** Files that could not be read at the start. */
  #unreadable: readonly string[] = [];
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();

  private constructor(options: CheckpointOptions, key: Buffer) {
    this.#options = options;
    this.#key = key;
  }

  /** Rejects when the directory is not usable. */
  static async open(options: CheckpointOptions): Promise<Checkpoint> {
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    const checkpoint = new Checkpoint(options, await readOrCreateKey(options.directory));
    for (const [key, text] of await checkpoint.#readAll()) checkpoint.#written.set(key, digest(text));
    return checkpoint;
  }

  /** Keys with a prefix like `pod/`. */
  keys(prefix: string): readonly string[] {
    const all = new Set([...this.#written.keys(), ...this.#pending.keys()]);
    return [...all].filter(
      (key) => key.startsWith(prefix) && (!this.#pending.has(key) || this.#pending.get(key) !== undefined),
    );
  }

  /** Undefined if there is no value, or if its file cannot be read any more. */
  async get(key: string): Promise<unknown> {
    const pending = this.#pending.get(key);
    if (pending !== undefined) return JSON.parse(canonicalJson(pending.value));
    if (!this.#written.has(key)) return undefined;
    const text = (await this.#read(toFileName(key)))?.text;
    return text === undefined ? undefined : JSON.parse(text);
  }

  /** Writes the value soon, if it differs from the one in the file. The caller must not modify the value afterwards. */
  set(key: string, value: unknown): void {
    this.#pending.set(key, { value });
    this.#scheduleFlush(SETTLE_MS);
  }

  delete(key: string): void {
    if (this.#written.has(key)) this.#pending.set(key, undefined);
    else this.#pending.delete(key);
    this.#scheduleFlush(SETTLE_MS);
  }

  /** Removes files that could not be read at the start. Values that are still needed must have been set again. */
  async removeUnreadable(): Promise<void> {
    if (this.#unreadable.length === 0) return;
    await this.flush();
    const written = new Set([...this.#written.keys()].map(toFileName));
    for (const file of this.#unreadable) if (!written.has(file)) await rm(this.#path(file), { force: true });
    this.#unreadable = [];
  }

  /** Resolves when all values are written, or the attempt failed. */
  async flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#writeAll());
    await this.#writing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.flush();
    this.#timer?.cancel();
  }

  #scheduleFlush(milliseconds: number): void {
    if (this.#pending.size === 0) return;
    this.#timer ??= this.#options.clock.timer(milliseconds, () => void this.flush());
  }

  async #writeAll(): Promise<void> {
    const slice = new TimeSlice();
    for (const [key, pending] of [...this.#pending]) {
      if (slice.isOver) await slice.end();
      const text = pending && canonicalJson(pending.value);
      try {
        if (text === undefined) await rm(this.#path(toFileName(key)), { force: true });
        else if (this.#written.get(key) !== digest(text)) await this.#write(key, text);
      } catch (error) {
        this.#options.log.error("Failed to write checkpoint", error, { key });
        this.#scheduleFlush(RETRY_MS);
        return;
      }
      if (text === undefined) this.#written.delete(key);
      else this.#written.set(key, digest(text));
      if (this.#pending.get(key) === pending) this.#pending.delete(key);
    }
  }

  async #write(key: string, text: string): Promise<void> {
    const file = toFileName(key);
    const sealed = seal(this.#key, file, Buffer.from(JSON.stringify([key, text])));
    await writeAtomically(this.#path(file), sealed);
  }

  #path(file: string): string {
    return join(this.#options.directory, file);
  }

  async #readAll(): Promise<readonly (readonly [string, string])[]> {
    const { directory, log } = this.#options;
    const found: (readonly [string, string])[] = [];
    const failures: { readonly file: string; readonly error: unknown }[] = [];
    for (const file of await readdir(directory)) {
      if (!file.endsWith(SUFFIX)) continue;
      await this.#readOne(file).then(
        ({ key, text }) => found.push([key, text]),
        (error: unknown) => failures.push({ file, error }),
      );
    }
    this.#unreadable = failures.map(({ file }) => file);
    const [first] = failures;
    // One log line for all files: after the loss of the key none can be decrypted.
    if (first !== undefined) {
      log.warn("Failed to read some files of the checkpoint; their pods wait for the API server", {
        directory,
        unreadable: failures.length,
        readable: found.length,
        file: first.file,
        error: String(first.error),
      });
    }
    return found;
  }

  /** Undefined for a file that was damaged since the start. */
  async #read(file: string): Promise<{ readonly text: string } | undefined> {
    try {
      return await this.#readOne(file);
    } catch (error) {
      this.#options.log.warn("Failed to read checkpoint", { file, error: String(error) });
      return undefined;
    }
  }

  /** Rejects for a file that was damaged, moved, or encrypted with another key. */
  async #readOne(file: string): Promise<{ readonly key: string; readonly text: string }> {
    const [key, text] = JSON.parse(unseal(this.#key, file, await readFile(this.#path(file))).toString("utf8"));
    if (typeof key === "string" && typeof text === "string" && toFileName(key) === file) return { key, text };
    throw new Error("the content does not match the file name");
  }
}

/** A hash, because names of pods and Secrets are confidential too. */
function toFileName(key: string): string {
  return `${createHash("sha256").update(key).digest("hex").slice(0, 40)}${SUFFIX}`;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

async function readOrCreateKey(directory: string): Promise<Buffer> {
  const path = join(directory, KEY_FILE);
  const found = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (found?.length === KEY_BYTES) return found;
  const key = randomBytes(KEY_BYTES);
  await writeAtomically(path, key);
  return key;
}

/** Syncs the content before the rename, so that a power failure leaves the old or the new file. */
async function writeAtomically(path: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, "w", 0o600);
  try {
    await file.writeFile(bytes);
    await file.datasync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}
