/** LevelDB as this engine uses it: bytes to bytes, synchronous reads, durable batches, errors as `StoreError`s. */
import { open, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Level } from "level";
import { makeDirectory } from "../../std/fs/make-directory.ts";
import { StoreError, type StoreErrorCode } from "../store.ts";
import { addAddonDirectory } from "./native.ts";

export type Operation =
  | { readonly type: "put"; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: "del"; readonly key: Buffer };

export interface Bounds {
  readonly gte: Buffer;
  readonly lt: Buffer;
}

export type Entry = [key: Buffer, value: Buffer];

/** Entries fetched at a time: enough to make the hop to the thread pool cheap, and few enough to wait for. */
const CHUNK_ENTRIES = 1000;
const CHUNK_BYTES = 2 ** 20;

/** LevelDB keeps up to two of these in memory, and replays one when it opens. */
const WRITE_BUFFER_BYTES = 4 * 2 ** 20;

/** To open a database LevelDB writes new files; without this much room it could not even be read afterwards. */
const OPEN_SPACE_BYTES = 4 * WRITE_BUFFER_BYTES;

export class Database {
  readonly #path: string;
  readonly #level: Level<Buffer, Buffer>;
  #failure: unknown;

  private constructor(path: string, level: Level<Buffer, Buffer>) {
    this.#path = path;
    this.#level = level;
  }

  static async open(path: string): Promise<Database> {
    try {
      await makeDurableDirectory(path);
    } catch (cause) {
      throw toStoreError(`Cannot make directory "${path}" for the embedded store`, cause);
    }
    addAddonDirectory(path);
    // Loaded only now: programs without an embedded store do without the native code.
    const { Level } = await import("level");
    const level = new Level<Buffer, Buffer>(path, {
      keyEncoding: "buffer",
      valueEncoding: "buffer",
      writeBufferSize: WRITE_BUFFER_BYTES,
    });
    try {
      await level.open();
    } catch (cause) {
      throw toStoreError(`Cannot open the embedded store in "${path}"`, cause);
    }
    return new Database(path, level);
  }

  get(key: Buffer): Buffer | undefined {
    try {
      return this.#level.getSync(key);
    } catch (cause) {
      throw toStoreError(`Cannot read the embedded store in "${this.#path}"`, cause);
    }
  }

  /** Chunks of entries in order of their keys; one consistent snapshot from the first chunk on. */
  async *entries(
    bounds: Bounds,
    options: { readonly reverse?: boolean; readonly limit?: number } = {},
  ): AsyncIterable<readonly Entry[]> {
    try {
      const iterator = this.#level.iterator({ ...bounds, ...options, highWaterMarkBytes: CHUNK_BYTES });
      try {
        for (;;) {
          const chunk = await iterator.nextv(CHUNK_ENTRIES);
          if (chunk.length === 0) return;
          yield chunk;
        }
      } finally {
        await iterator.close();
      }
    } catch (cause) {
      throw toStoreError(`Cannot read the embedded store in "${this.#path}"`, cause);
    }
  }

  /**
   * All or nothing. With `sync`, resolves when the disk has it. After a failure nothing is written any more: the log
   * may end in half a record, and LevelDB, when it replays the log, drops what comes behind one.
   */
  async write(operations: Operation[], sync: boolean): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      await this.#level.batch(operations, { sync });
    } catch (cause) {
      this.#failure ??= toStoreError(`Cannot write the embedded store in "${this.#path}"`, cause);
      throw this.#failure;
    }
  }

  async hasSpaceToOpen(): Promise<boolean> {
    const { bavail, bsize } = await statfs(this.#path);
    return bavail * bsize >= OPEN_SPACE_BYTES;
  }

  close(): Promise<void> {
    return this.#level.close();
  }
}

/** A new directory is only safe from a power cut once the directories above it are on disk. */
async function makeDurableDirectory(path: string): Promise<void> {
  const created = await makeDirectory(path, 0o700);
  if (created === undefined) return;
  for (let directory = dirname(path); ; directory = dirname(directory)) {
    const handle = await open(directory, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (directory === dirname(created) || directory === dirname(directory)) return;
  }
}

/** The one sentence an operator needs, under the code that says what kind of trouble it is. */
function toStoreError(doing: string, cause: unknown): unknown {
  if (cause instanceof StoreError) return cause;
  const root = rootCause(cause);
  const text = root instanceof Error ? root.message : String(root);
  const code = codeOf(root, text);
  switch (code) {
    case "locked":
      return new StoreError(code, `${doing}: another process has it open`, { cause: root });
    case "no-space":
      return new StoreError(code, `${doing}: no space is left on the device`, { cause: root });
    case "corrupt":
      return new StoreError(code, `${doing}: it is damaged (${text}); restore a backup or remove it`, { cause: root });
    case "closed":
      return new StoreError("unavailable", `${doing}: it is being opened again`, { cause: root });
    default:
      return new StoreError("unavailable", `${doing}: ${text}`, { cause: root });
  }
}

function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootCause(error.cause) : error;
}

function codeOf(error: unknown, text: string): StoreErrorCode {
  const code = (error as { readonly code?: unknown }).code;
  if (code === "LEVEL_LOCKED") return "locked";
  if (code === "LEVEL_CORRUPTION") return "corrupt";
  // LevelDB reports the system's words, not its error numbers.
  if (code === "ENOSPC" || /no space left on device|disk quota exceeded/i.test(text)) return "no-space";
  if (code === "LEVEL_DATABASE_NOT_OPEN" || code === "LEVEL_ITERATOR_NOT_OPEN") return "closed";
  // What a missing table file is called on opening.
  if (/^Corruption|missing files/i.test(text)) return "corrupt";
  return "unavailable";
}
