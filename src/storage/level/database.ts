/** LevelDB with the interface of this engine: synchronous reads, durable batches, errors as `StoreError`s. */
import { open, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Level } from "level";
import { makeDirectory } from "../../std/fs/make-directory.ts";
import { syncDirectory } from "../../std/fs/sync-directory.ts";
import type { Logger } from "../../std/log/logger.ts";
import { StoreError, type StoreErrorCode } from "../store.ts";
import { rejectIfOpen, trackOpenDirectory } from "./lock.ts";
import { addAddonDirectory } from "./native.ts";
import type { FileVerifier } from "./verify/file-verifier.ts";
import { copyFileAside, keepCopy } from "./verify/keep-copy.ts";
import {
  findTornManifest,
  findUnfinishedCreation,
  findUnfinishedOpening,
  type TornRecord,
  type VerifyOptions,
  verifyDatabase,
} from "./verify/verify.ts";

export type Operation =
  | { readonly type: "put"; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: "del"; readonly key: Buffer };

export interface Bounds {
  readonly gte: Buffer;
  readonly lt: Buffer;
}

export type Entry = [key: Buffer, value: Buffer];

/** Limits of a chunk of entries: large enough to amortize the call of the thread pool. */
const CHUNK_ENTRIES = 1000;
const CHUNK_BYTES = 2 ** 20;

/** LevelDB has up to two of these buffers in memory, and replays one when it opens. */
const WRITE_BUFFER_BYTES = 4 * 2 ** 20;

/** Level's type has only what browsers have too. */
type Engine = Level<Buffer, Buffer> & { compactRange(start: Buffer, end: Buffer): Promise<void> };

export class Database {
  /** Whether all tables were verified before it was opened. */
  readonly isVerified: boolean;
  readonly #path: string;
  readonly #level: Engine;
  readonly #tracked: Disposable;
  #failure: unknown;
  #verifier: FileVerifier | undefined;

  private constructor(path: string, level: Engine, tracked: Disposable, isVerified: boolean) {
    this.isVerified = isVerified;
    this.#path = path;
    this.#level = level;
    this.#tracked = tracked;
  }

  /** Verifies the files before LevelDB may change any. */
  static async open(path: string, log: Logger, verify: VerifyOptions = { tables: true }): Promise<Database> {
    try {
      await makeDurableDirectory(path);
    } catch (cause) {
      throw toStoreError(`Cannot make directory "${path}" for the embedded store`, cause);
    }
    addAddonDirectory(path);
    // Loaded here, so that programs without an embedded store do not load native code.
    const { Level } = await import("level");
    await verifyFiles(path, log, verify);
    const level = new Level<Buffer, Buffer>(path, {
      keyEncoding: "buffer",
      valueEncoding: "buffer",
      writeBufferSize: WRITE_BUFFER_BYTES,
    }) as Engine;
    try {
      await level.open();
      // LevelDB does not sync the directory after it renamed CURRENT.
      await syncDirectory(path);
    } catch (cause) {
      throw toStoreError(`Cannot open the embedded store in "${path}"`, cause);
    }
    return new Database(path, level, await trackOpenDirectory(path), verify.tables);
  }

  /** Reads of damaged tables fail from now on, and so do writes, which would start their compaction. */
  guard(verifier: FileVerifier): void {
    this.#verifier = verifier;
  }

  get(key: Buffer): Buffer | undefined {
    this.#checkDamage(key);
    try {
      return this.#level.getSync(key);
    } catch (cause) {
      throw toStoreError(`Cannot read the embedded store in "${this.#path}"`, cause);
    }
  }

  /** As `get`, in LevelDB's threads, and without a place in its cache: for what is read once and may be large. */
  async read(key: Buffer): Promise<Buffer | undefined> {
    this.#checkDamage(key);
    try {
      return await this.#level.get(key, { fillCache: false });
    } catch (cause) {
      throw toStoreError(`Cannot read the embedded store in "${this.#path}"`, cause);
    }
  }

  #checkDamage(key: Buffer): void {
    if (this.#verifier?.damage === undefined) return;
    this.#verifier.check({ gte: key, lt: Buffer.concat([key, Buffer.of(0)]) });
  }

  /** Chunks of entries in key order, from one consistent snapshot. */
  async *entries(
    bounds: Bounds,
    options: { readonly reverse?: boolean; readonly limit?: number } = {},
  ): AsyncIterable<readonly Entry[]> {
    await this.#verifier?.verifyRange(bounds);
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
   * Atomic. Resolves when the batch is on disk. After a failure all writes fail: the log may end in a partial record,
   * and when LevelDB replays the log it drops what follows one. Every batch is synced, so that a power cut can only
   * damage the last record: damage of others is found when the database is opened.
   */
  async write(operations: Operation[]): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#verifier?.damage !== undefined) throw this.#verifier.damage;
    try {
      await this.#level.batch(operations, { sync: true });
    } catch (cause) {
      this.#failure ??= toStoreError(`Cannot write the embedded store in "${this.#path}"`, cause);
      throw this.#failure;
    }
  }

  /** Removes deleted entries from the tables of the range. */
  async compactRange({ gte, lt }: Bounds): Promise<void> {
    try {
      await this.#level.compactRange(gte, lt);
    } catch (cause) {
      throw toStoreError(`Cannot compact the embedded store in "${this.#path}"`, cause);
    }
  }

  async close(): Promise<void> {
    await this.#level.close();
    this.#tracked[Symbol.dispose]();
  }
}

/** Syncs the parent directories too: without that a power failure can lose a new directory. */
async function makeDurableDirectory(path: string): Promise<void> {
  const created = await makeDirectory(path, 0o700);
  if (created === undefined) return;
  for (let directory = dirname(path); ; directory = dirname(directory)) {
    await syncDirectory(directory);
    if (directory === dirname(created) || directory === dirname(directory)) return;
  }
}

/** Damage is real only while no other process has the database open: another one changes the files meanwhile. */
async function verifyFiles(path: string, log: Logger, options: VerifyOptions): Promise<void> {
  try {
    const unfinished = await findUnfinishedCreation(path);
    if (unfinished.length > 0) await rejectIfOpen(path);
    for (const name of unfinished) await rm(join(path, name), { force: true });
    const manifest = await findUnfinishedOpening(path);
    if (manifest !== undefined) {
      await rejectIfOpen(path);
      await replaceCurrent(path, manifest);
      log.warn("Finished an opening of the embedded store that a power cut had ended", { path, manifest });
    }
    const incomplete = await verifyDatabase(path, options);
    const torn = await findTornManifest(path);
    if (incomplete === undefined && torn === undefined) return;
    await rejectIfOpen(path);
    if (incomplete !== undefined) await keepCopy(path, incomplete, log);
    if (torn !== undefined) await dropTornRecord(path, torn, log);
  } catch (cause) {
    await rejectIfOpen(path);
    throw toStoreError(`Cannot open the embedded store in "${path}"`, cause);
  }
}

async function dropTornRecord(path: string, { name, offset }: TornRecord, log: Logger): Promise<void> {
  const copy = await copyFileAside(path, name);
  const file = await open(join(path, name), "r+");
  try {
    await file.truncate(offset);
    await file.sync();
  } finally {
    await file.close();
  }
  log.warn("Dropped the last record of the MANIFEST, which a power cut had torn; the version before is complete", {
    path,
    manifest: name,
    offset,
    copy,
  });
}

/** As LevelDB does, which deletes the temporary file if it stays. */
async function replaceCurrent(path: string, manifest: string): Promise<void> {
  const temporary = join(path, "000000.dbtmp");
  await writeFile(temporary, `${manifest}\n`, { flush: true });
  await rename(temporary, join(path, "CURRENT"));
  await syncDirectory(path);
}

/** Converts an error of LevelDB to a `StoreError` with a code and an explanation. */
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
  // LevelDB reports the system's error message without its number.
  if (code === "ENOSPC" || /no space left on device|disk quota exceeded/i.test(text)) return "no-space";
  if (code === "LEVEL_DATABASE_NOT_OPEN" || code === "LEVEL_ITERATOR_NOT_OPEN") return "closed";
  // The message for a missing table file.
  if (/^Corruption|missing files/i.test(text)) return "corrupt";
  return "unavailable";
}
