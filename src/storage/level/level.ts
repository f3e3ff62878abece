import { Wakeup } from "../../std/async/wakeup.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { Compactor } from "../compactor.ts";
import { type ExpiredValue, Expiry } from "../expiry.ts";
import { Leases } from "../leases.ts";
import {
  type KeyValue,
  type ListOptions,
  type Page,
  type Range,
  type ReadOptions,
  type Revision,
  type ScanPart,
  type Store,
  type StoreAlarm,
  StoreError,
  type StoreStatus,
  type WatchBatch,
  type WatchEvent,
  type WriteOptions,
} from "../store.ts";
import { checkRevision, inRange, storeClosed } from "../store-errors.ts";
import { History } from "../watch/history.ts";
import { compactBefore } from "./compaction.ts";
import { Database } from "./database.ts";
import { ttlKey } from "./keys.ts";
import { type Layout, readLayout, readTtls, type Ttl } from "./layout.ts";
import { listAt, readAt, readEvents, readValue, scanAt } from "./mvcc.ts";
import { restrictPermissions } from "./permissions.ts";
import { finishReplacement } from "./replacement.ts";
import { ensureSpaceToOpen, hasSpaceToOpen, Space } from "./space.ts";
import { FileVerifier } from "./verify/file-verifier.ts";
import { RevisionFile, readRevisionFile } from "./verify/revision-file.ts";
import { lostRevisions } from "./verify/verify.ts";
import { type CommittedWrite, Writer } from "./writer.ts";

export interface LevelStoreOptions {
  /** The directory of the database; created when missing. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Interval of compaction; 0 disables it. */
  readonly compactionIntervalMs: number;
  /** Compaction keeps history that is younger than this; `compactionIntervalMs` when absent. */
  readonly historyRetentionMs?: number | undefined;
  /** See `Leases`. */
  readonly leaseReuseSeconds?: number | undefined;
  /** The size in bytes at which writes that add are refused; unlimited when absent. */
  readonly quotaBytes?: number | undefined;
  /** Whether writes of the key may wait for others for a moment, to share their sync; none does when absent. */
  readonly isDeferrable?: ((key: string) => boolean) | undefined;
}

/** Rejects with a `StoreError`, among others of code `locked`, `corrupt` or `newer-format`. */
export async function openLevelStore(options: LevelStoreOptions): Promise<Store> {
  const { path, log } = options;
  if (await finishReplacement(path)) log.warn("Finished an interrupted repair of the embedded store", { path });
  await ensureSpaceToOpen(path);
  const database = await Database.open(path, log);
  try {
    await restrictPermissions(path, log);
    const layout = await readLayout(database, path);
    await checkRevisionFile(path, layout.revision);
    const revisionFile = await RevisionFile.open(path, options.clock, layout.revision);
    const ttls = await readTtls(database);
    const store: { opened?: LevelStore } = {};
    const space = await Space.open({
      ...options,
      quotaBytes: options.quotaBytes,
      onQuotaAlarm: () => store.opened?.reclaim(),
    });
    store.opened = new LevelStore(options, { database, layout, ttls, revisionFile, space });
    if (space.hasQuotaAlarm) store.opened.reclaim();
    return store.opened;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** LevelDB ends at an older revision than the store had when tables or an empty log replaced newer ones. */
async function checkRevisionFile(path: string, revision: Revision): Promise<void> {
  const reached = await readRevisionFile(path);
  if (reached !== undefined && revision < reached.revision) {
    throw lostRevisions(path, "the store", revision, reached.revision);
  }
}

/** Recent changes in memory, which serve the watches that are not far behind: usually all. */
const RECENT = { items: 2048, bytes: 4 * 2 ** 20 };
/** Revisions read from disk at a time for a watch that is further behind. */
const PAST_REVISIONS = 500;
/** Tables of about 2 MiB that are merged at a time, which delays the end of the process. */
const RECLAIM_TABLES = 16;
/** The same on a disk that is almost full. */
const RECLAIM_TABLES_FULL = 2;
/** Expired values deleted at a time. */
const EXPIRING_WRITES = 500;
/** The keys and the other entries of a write in the log, at least. */
const ENTRY_BYTES = 200;
/** The memory of recent changes is released after this time with at most so many writes, such as heartbeats. */
const QUIET = { ms: 20_000, writes: 100 };
/** Minimum time after a failed write before the database is opened again. */
const REOPEN_PAUSE_MS = 5000;

interface Recent {
  readonly revision: Revision;
  readonly size: number;
  readonly key: string;
  readonly event: WatchEvent;
}

interface LevelStoreParts {
  readonly database: Database;
  readonly layout: Layout;
  readonly ttls: Iterable<Ttl>;
  readonly revisionFile: RevisionFile;
  readonly space: Space;
}

/** The embedded engine: LevelDB has every version until compaction; an acknowledged write is on disk. */
class LevelStore implements Store {
  readonly #options: LevelStoreOptions;
  readonly #writer: Writer;
  readonly #recent: History<Recent>;
  readonly #changed = new Wakeup();
  readonly #expiry: Expiry;
  readonly #leases: Leases;
  readonly #compactor: Compactor | undefined;
  readonly #revisionFile: RevisionFile;
  readonly #space: Space;
  readonly #verifier: FileVerifier;
  #database: Database;
  /** The revision of the latest write on disk. */
  #revision: Revision;
  #oldest: Revision;
  #closed = false;
  #compacting: Promise<void> = Promise.resolve();
  #expiring: Promise<void> = Promise.resolve();
  #reopening: Promise<void> | undefined;
  /** Writes since the timer was started. */
  #writes = 0;
  #quietTimer: Timer | undefined;
  readonly #log = { bytes: 0, syncs: 0 };
  #failedAt: number | undefined;

  constructor(options: LevelStoreOptions, { database, layout, ttls, revisionFile, space }: LevelStoreParts) {
    this.#options = options;
    this.#database = database;
    this.#space = space;
    this.#verifier = new FileVerifier(options);
    database.guard(this.#verifier);
    this.#revision = layout.revision;
    this.#oldest = layout.oldest;
    this.#recent = new History(RECENT, layout.revision);
    this.#writer = new Writer(
      {
        database: () => this.#database,
        admit: (key, previous, next) => this.#space.admit(key, previous, next),
        onCommit: (writes) => this.#committed(writes),
        onFailure: () => void this.#revisionFile.recordFailure(this.#revision),
        clock: options.clock,
        isDeferrable: options.isDeferrable ?? (() => false),
      },
      layout.revision,
    );
    this.#revisionFile = revisionFile;
    this.#leases = new Leases(options.leaseReuseSeconds ?? 0);
    this.#expiry = new Expiry(options.clock, (due) => {
      this.#expiring = this.#expiring.then(() => this.#expire(due));
    });
    for (const { key, revision, at } of ttls) this.#expiry.schedule(key, revision, at);
    if (options.compactionIntervalMs > 0) this.#compactor = this.#startCompactor(options);
  }

  current(): Revision {
    return this.#revision;
  }

  async get(key: string, options?: ReadOptions): Promise<KeyValue | undefined> {
    this.#check(options?.revision);
    if (options?.revision !== undefined) return await readAt(this.#database, key, options.revision);
    // The database shows a write before its revision is current: what a reader does then must not reveal it.
    const settled = this.#writer.settled(key);
    if (settled !== undefined) await settled;
    return this.#writer.stored(key);
  }

  async list(range: Range, options: ListOptions = {}): Promise<Page> {
    this.#check(options.revision);
    return await listAt(this.#database, range, options.revision ?? this.#revision, options);
  }

  async *scan(range: Range, options?: ReadOptions): AsyncIterable<ScanPart> {
    this.#check(options?.revision);
    yield* scanAt(this.#database, range, options?.revision ?? this.#revision);
  }

  readVersion(key: string, modified: Revision): Uint8Array | undefined {
    this.#check();
    return readValue(this.#database, key, modified);
  }

  create(key: string, value: Uint8Array, options?: WriteOptions): Promise<Revision> {
    return this.#write(key, value, 0 as Revision, options);
  }

  update(key: string, value: Uint8Array, expected: Revision, options?: WriteOptions): Promise<Revision> {
    return this.#write(key, value, expected, options);
  }

  delete(key: string, expected: Revision): Promise<Revision> {
    return this.#write(key, undefined, expected);
  }

  /** The state of a watch is the last delivered revision: a slow reader uses no memory. */
  async *watch(range: Range, from: Revision, signal: AbortSignal): AsyncIterable<WatchBatch> {
    let seen = from;
    while (!signal.aborted) {
      this.#check(seen);
      if (seen === this.#revision) {
        await this.#changed.wait(signal);
        continue;
      }
      const batch = seen < this.#recent.start ? await this.#past(range, seen) : this.#live(range, seen);
      seen = batch.revision;
      if (signal.aborted) return;
      yield batch;
    }
  }

  async compact(before: Revision): Promise<void> {
    this.#check(Math.max(before, this.#oldest) as Revision);
    const run = async (): Promise<void> => {
      if (before <= this.#oldest || this.#closed) return;
      this.#oldest = before;
      await compactBefore(this.#database, before);
      if (this.#space.hasQuotaAlarm) this.reclaim();
      else if (this.#space.canMergeTables) this.reclaim(RECLAIM_TABLES_FULL);
    };
    this.#compacting = this.#compacting.then(run, run);
    await this.#compacting;
  }

  status(): StoreStatus {
    const alarms: StoreAlarm[] = this.#space.alarms().map((message) => ({ type: "NOSPACE", message }));
    const { damage } = this.#verifier;
    if (damage !== undefined) alarms.push({ type: "CORRUPT", message: damage.message });
    const { failure } = this.#writer;
    if (failure !== undefined && failure.code !== "no-space") {
      alarms.push({ type: "FAILED", message: `${failure.message}. Writes fail until the disk accepts them again` });
    }
    const { sizeBytes } = this.#space;
    return { sizeBytes, quotaBytes: this.#options.quotaBytes, alarms, log: { ...this.#log } };
  }

  /** Deleted values take space until LevelDB merges their tables. */
  reclaim(tables = RECLAIM_TABLES): void {
    const run = async (): Promise<void> => {
      for (const range of await this.#verifier.ranges(tables)) {
        if (!this.#closed && this.#verifier.damage === undefined) await this.#database.compactRange(range);
      }
      await this.#space.measure();
    };
    this.#compacting = this.#compacting.then(run, run).catch((error: unknown) => {
      if (!this.#closed) this.#options.log.error("Cannot reclaim the space of deleted values", error);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#expiry.close();
    this.#quietTimer?.cancel();
    this.#compactor?.close();
    this.#changed.notify();
    await this.#writer.idle();
    await Promise.allSettled([this.#compacting, this.#reopening, this.#expiring]);
    await this.#space.close();
    await this.#verifier.close();
    await this.#database.close();
    await this.#revisionFile.close();
  }

  #check(revision: Revision = this.#revision): void {
    if (this.#closed) throw storeClosed();
    checkRevision(revision, this.#oldest, this.#revision);
  }

  async #write(
    key: string,
    value: Uint8Array | undefined,
    expected: Revision,
    options?: WriteOptions,
  ): Promise<Revision> {
    this.#check();
    if (expected === 0 && value === undefined) throw new RangeError(`Cannot delete "${key}": revision 0 is none`);
    if (this.#writer.failure !== undefined) await this.#recover(this.#writer.failure);
    const ttl = options?.ttlSeconds;
    const expiresAt = ttl === undefined ? undefined : this.#leases.expiresAt(ttl, this.#options.clock.now());
    const request = { key, value, expected, expiresAt };
    try {
      return await this.#writer.write(request);
    } catch (error) {
      const { failure } = this.#writer;
      if (!(error instanceof StoreError) || error.code !== "no-space") throw error;
      if (error === failure) await this.#useReserve(failure);
      else if (!(await this.#space.hasSpaceAgain())) throw error;
      return await this.#writer.write(request);
    }
  }

  /** With the reserve, deletions and small updates succeed on a full disk. */
  async #useReserve(failure: StoreError): Promise<void> {
    // Starts the alarm.
    await this.#space.measure();
    if (!this.#space.hasReserve && this.#reopening === undefined) throw failure;
    await this.#recover(failure);
  }

  #committed(writes: readonly CommittedWrite[]): void {
    const logBytes = writes.reduce((sum, { bytes }) => sum + bytes + ENTRY_BYTES, 0);
    this.#space.written(logBytes);
    this.#log.bytes += logBytes;
    this.#log.syncs++;
    for (const { event, revision, bytes, expiresAt } of writes) {
      const key = event.type === "put" ? event.item.key : event.key;
      this.#recent.push({ revision, size: bytes, key, event });
      this.#revision = revision;
      if (expiresAt !== undefined) this.#expiry.schedule(key, revision, expiresAt);
    }
    this.#revisionFile.update(this.#revision);
    this.#changed.notify();
    this.#writes += writes.length;
    this.#quietTimer ??= this.#options.clock.timer(QUIET.ms, () => this.#releaseWhenQuiet());
  }

  /** Watches that are behind read from disk then. The next write starts the timer again. */
  #releaseWhenQuiet(): void {
    const isQuiet = this.#writes <= QUIET.writes;
    this.#writes = 0;
    this.#quietTimer = undefined;
    if (this.#closed) return;
    if (!isQuiet) this.#quietTimer = this.#options.clock.timer(QUIET.ms, () => this.#releaseWhenQuiet());
    else this.#recent.restart(this.#revision);
  }

  #live(range: Range, from: Revision): WatchBatch {
    const recent = this.#recent.since(from).filter((change) => inRange(change.key, range));
    return { events: recent.map((change) => change.event), revision: this.#revision };
  }

  async #past(range: Range, from: Revision): Promise<WatchBatch> {
    const batch = await readEvents(this.#database, range, from, this.#revision, PAST_REVISIONS);
    // Compaction may have deleted changes during the read.
    this.#check(from);
    return batch;
  }

  /** Deletes in chunks, between which other writes run. */
  async #expire(due: readonly ExpiredValue[]): Promise<void> {
    for (let start = 0; start < due.length; start += EXPIRING_WRITES) {
      const chunk = due.slice(start, start + EXPIRING_WRITES);
      const removed = await Promise.all(chunk.map((expired) => this.#remove(expired)));
      const done = chunk.filter((_, i) => removed[i] === true);
      if (this.#closed || done.length === 0) continue;
      const operations = done.map(({ revision }) => ({ type: "del" as const, key: ttlKey(revision) }));
      // Entries that stay are processed again after the next start.
      await this.#database.write(operations).catch(() => {});
    }
  }

  /** Whether the value is deleted, or was written again. */
  async #remove({ key, revision }: ExpiredValue): Promise<boolean> {
    const { clock, log } = this.#options;
    try {
      if (this.#writer.stored(key)?.modified === revision) await this.#write(key, undefined, revision);
      return true;
    } catch (error) {
      if (this.#closed) return false;
      if (error instanceof StoreError && error.code === "conflict") return true;
      if (this.#verifier.damage === undefined)
        log.error("Failed to delete an expired value; retrying in a minute", error, { key });
      this.#expiry.schedule(key, revision, clock.now() + 60_000);
      return false;
    }
  }

  #startCompactor({ clock, log, compactionIntervalMs, historyRetentionMs }: LevelStoreOptions): Compactor {
    return new Compactor({
      clock,
      log,
      intervalMs: compactionIntervalMs,
      retentionMs: historyRetentionMs ?? compactionIntervalMs,
      current: () => this.#revision,
      compact: (before) => this.compact(before),
    });
  }

  /**
   * After a failed write the database accepts no more writes; reads continue. Opens it again, which starts a new log,
   * when there is enough disk space.
   */
  async #recover(failure: StoreError): Promise<void> {
    const { clock } = this.#options;
    if (this.#verifier.damage !== undefined) throw this.#verifier.damage;
    this.#failedAt ??= clock.monotonic();
    const hasReserve = failure.code === "no-space" && this.#space.hasReserve;
    const isDue = hasReserve || clock.monotonic() - this.#failedAt >= REOPEN_PAUSE_MS;
    if (this.#reopening === undefined && !isDue) throw failure;
    this.#reopening ??= this.#reopen(failure).finally(() => {
      this.#reopening = undefined;
    });
    await this.#reopening;
  }

  async #reopen(failure: StoreError): Promise<void> {
    const { clock, log, path } = this.#options;
    this.#failedAt = clock.monotonic();
    if (failure.code === "no-space" && this.#space.hasReserve) await this.#space.release();
    if (!(await hasSpaceToOpen(path))) throw failure;
    // Reads continue while the disk accepts no writes, as one that has become read-only.
    if (!(await this.#revisionFile.recordFailure(this.#revision))) throw failure;
    await this.#compacting.catch(() => {});
    await this.#database.close();
    this.#database = await Database.open(path, log, { tables: false });
    this.#database.guard(this.#verifier);
    const layout = await readLayout(this.#database, path);
    // The failed writes may be on disk: watches read them from there, and their values expire.
    for (const { key, revision, at } of await readTtls(this.#database)) {
      if (revision > this.#revision) this.#expiry.schedule(key, revision, at);
    }
    this.#recent.restart(layout.revision);
    this.#revision = layout.revision;
    this.#writer.reset(layout.revision);
    this.#failedAt = undefined;
    this.#changed.notify();
    log.info("The embedded store accepts writes again", { path });
  }
}
