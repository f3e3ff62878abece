/**
 * What a node has to know to start its pods while the API server is away: pods, and what they refer to, encrypted in
 * files of their own. A file is written when its value changed, whole or not at all.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { canonicalJson } from "../../schema/json/canonical-json.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { KEY_BYTES, seal, unseal } from "./seal.ts";

export interface CheckpointOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Changes come in bursts: a pod that starts has several statuses. */
const SETTLE_MS = 1_000;
const RETRY_MS = 30_000;
const SUFFIX = ".sealed";
const KEY_FILE = "key";

export class Checkpoint implements AsyncDisposable {
  readonly #options: CheckpointOptions;
  readonly #key: Buffer;
  /** Digests of what the files hold, by key; bounded by the pods of the node and what these refer to. */
  readonly #written = new Map<string, string>();
  /** What is to be written, undefined to be removed; the newest only. */
  readonly #pending = new Map<string, { readonly value: unknown } | undefined>();
  /** Files that could not be read at the start. */
  #unreadable: readonly string[] = [];
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();

  private constructor(options: CheckpointOptions, key: Buffer) {
    this.#options = options;
    this.#key = key;
  }

  /** Rejects when the directory cannot be used. */
  static async open(options: CheckpointOptions): Promise<Checkpoint> {
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    const checkpoint = new Checkpoint(options, await readOrCreateKey(options.directory));
    for (const [key, text] of await checkpoint.#readAll()) checkpoint.#written.set(key, digest(text));
    return checkpoint;
  }

  /** Keys that begin so: `pod/`. */
  keys(prefix: string): readonly string[] {
    const all = new Set([...this.#written.keys(), ...this.#pending.keys()]);
    return [...all].filter(
      (key) => key.startsWith(prefix) && (!this.#pending.has(key) || this.#pending.get(key) !== undefined),
    );
  }

  /** Undefined when there is none, or when it cannot be read any more. */
  async get(key: string): Promise<unknown> {
    const pending = this.#pending.get(key);
    if (pending !== undefined) return JSON.parse(canonicalJson(pending.value));
    if (!this.#written.has(key)) return undefined;
    const text = (await this.#read(toFileName(key)))?.text;
    return text === undefined ? undefined : JSON.parse(text);
  }

  /** Notes the value, which must not change any more; it is written soon, when it is another than before. */
  set(key: string, value: unknown): void {
    this.#pending.set(key, { value });
    this.#later(SETTLE_MS);
  }

  delete(key: string): void {
    if (this.#written.has(key)) this.#pending.set(key, undefined);
    else this.#pending.delete(key);
    this.#later(SETTLE_MS);
  }

  /** Removes what could not be read; what of it is still wanted must have been noted again. */
  async removeUnreadable(): Promise<void> {
    if (this.#unreadable.length === 0) return;
    await this.flush();
    const held = new Set([...this.#written.keys()].map(toFileName));
    for (const file of this.#unreadable) if (!held.has(file)) await rm(this.#path(file), { force: true });
    this.#unreadable = [];
  }

  /** Resolves when all that was noted is in files, or could not be. */
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

  #later(milliseconds: number): void {
    if (this.#pending.size === 0) return;
    this.#timer ??= this.#options.clock.timer(milliseconds, () => void this.flush());
  }

  async #writeAll(): Promise<void> {
    for (const [key, pending] of [...this.#pending]) {
      const text = pending && canonicalJson(pending.value);
      try {
        if (text === undefined) await rm(this.#path(toFileName(key)), { force: true });
        else if (this.#written.get(key) !== digest(text)) await this.#write(key, text);
      } catch (error) {
        this.#options.log.error("Cannot write checkpoint", error, { key });
        this.#later(RETRY_MS);
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
    // One line, however many there are: a key that was lost leaves nothing to be read.
    if (first !== undefined) {
      log.warn("Cannot read all of the checkpoint: what it misses waits for the API server", {
        directory,
        unreadable: failures.length,
        readable: found.length,
        file: first.file,
        error: String(first.error),
      });
    }
    return found;
  }

  /** Undefined for what was damaged since the start. */
  async #read(file: string): Promise<{ readonly text: string } | undefined> {
    try {
      return await this.#readOne(file);
    } catch (error) {
      this.#options.log.warn("Cannot read checkpoint", { file, error: String(error) });
      return undefined;
    }
  }

  /** Rejects for what was damaged, moved, or sealed with another key. */
  async #readOne(file: string): Promise<{ readonly key: string; readonly text: string }> {
    const [key, text] = JSON.parse(unseal(this.#key, file, await readFile(this.#path(file))).toString("utf8"));
    if (typeof key === "string" && typeof text === "string" && toFileName(key) === file) return { key, text };
    throw new Error("it holds something else");
  }
}

/** Names of pods and Secrets are nobody's business either. */
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
  const made = randomBytes(KEY_BYTES);
  await writeAtomically(path, made);
  return made;
}

/** As a whole, and lasting, even when the power goes. */
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
