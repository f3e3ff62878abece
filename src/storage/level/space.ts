/**
 * The space of the store: a quota for its files, as etcd's --quota-backend-bytes, and what the disk has left. While one
 * of them is exhausted an alarm is on: deletions and updates that add little are accepted, other writes are refused.
 */
import { randomBytes } from "node:crypto";
import { open, readdir, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { StoreError } from "../store.ts";

const MIB = 2 ** 20;

/** Occupies disk space that is given to deletions when the disk is full. */
export const RESERVE_FILE = "RESERVE";
/** It has a third of the free space above that of the alarm, but no more than this. */
const RESERVE_BYTES_MAX = 32 * MIB;
const RESERVE_SHARE = 3;
/** Less would not be enough to open the database again. */
const RESERVE_BYTES_MIN = 4 * MIB;

/** Free disk space that is enough to open a database, whatever its logs. */
const OPEN_FREE_BYTES = 16 * MIB;
/** What opening writes beside copies of the logs: an empty log, and blocks that are not full. */
const OPEN_MARGIN_BYTES = 2 * MIB;
/** The alarm starts when less than this is free, or less than this part of a small disk. It ends at twice as much. */
const LOW_FREE_BYTES = OPEN_FREE_BYTES;
const LOW_FREE_SHARE = 8;
/** LevelDB merges tables of up to this size at a time, or all; the old ones and their logs are deleted afterwards. */
const MERGED_BYTES_MAX = 40 * MIB;
const MERGED_SIZES = 1.5;
/** Free space that is enough to merge a few tables. */
const MERGE_FREE_BYTES = 8 * MIB;

/** An update may add this much during an alarm: finalizers, a deletion timestamp, conditions of a node. */
const GROWTH_BYTES = 4096;
/** Updates add history. Beyond this part of the quota only deletions are accepted until the history is compacted. */
const UPDATES_QUOTA = 1.1;
/** The alarm ends below this part of the quota. */
const ALARM_ENDS = 63 / 64;

/** Writes between two measurements, and the time between them. */
const MEASURE_BYTES = 16 * MIB;
const INTERVAL_MS = 30_000;
const ALARM_INTERVAL_MS = 5000;
/** The same for writes that are refused. */
const REFUSALS_MS = 1000;

export interface SpaceOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** In bytes; undefined for none. */
  readonly quotaBytes: number | undefined;
  /** Called when the quota is exhausted. */
  readonly onQuotaAlarm: () => void;
}

export class Space {
  readonly #options: SpaceOptions;
  /** The part of the disk that writes since the measurements have used, at least. */
  #written = 0;
  #size = 0;
  #free = Number.POSITIVE_INFINITY;
  #capacity = Number.POSITIVE_INFINITY;
  /** Bytes of the reserve; 0 for none. */
  #reserve = 0;
  #isReleased = false;
  #quotaAlarm = false;
  #diskAlarm = false;
  #timer: Timer | undefined;
  #measuring: Promise<void> | undefined;
  /** Monotonic time. */
  #measuredAt = 0;
  #closed = false;

  private constructor(options: SpaceOptions) {
    this.#options = options;
  }

  /** Writes the reserve before the store accepts writes: the disk may be full a moment later. */
  static async open(options: SpaceOptions): Promise<Space> {
    const space = new Space(options);
    space.#reserve = await sizeOf(join(options.path, RESERVE_FILE));
    await space.#measure();
    await space.#fillReserve();
    space.#arm();
    return space;
  }

  /** Bytes of all files but the reserve. */
  get sizeBytes(): number {
    return this.#size + this.#written;
  }

  get hasQuotaAlarm(): boolean {
    return this.#quotaAlarm;
  }

  /** Whether the disk alarm is on, and a few tables can be merged to free the space of deleted values. */
  get canMergeTables(): boolean {
    return this.#diskAlarm && this.#free - this.#written >= MERGE_FREE_BYTES;
  }

  /** Whether `release` gives disk space back. */
  get hasReserve(): boolean {
    return this.#reserve > 0;
  }

  /** A sentence for each alarm. */
  alarms(): readonly string[] {
    const { quotaBytes } = this.#options;
    const sentences: string[] = [];
    if (this.#quotaAlarm) {
      sentences.push(
        `the store has ${this.sizeBytes} bytes, its quota is ${quotaBytes} (--kvstore-quota-bytes): only deletions ` +
          "and small updates are accepted. Delete objects and wait for the compaction, or raise the quota",
      );
    }
    if (this.#diskAlarm) {
      sentences.push(
        `the disk of the store has ${Math.max(0, this.#free)} bytes left: only deletions and small updates are ` +
          "accepted. Free space on it",
      );
    }
    return sentences;
  }

  /** Throws `no-space` for a write that adds to a store with an alarm. Lengths in bytes; 0 for no value. */
  admit(key: string, previous: number, next: number): void {
    this.#update();
    if (next === 0 || !(this.#quotaAlarm || this.#diskAlarm)) return;
    if (previous > 0 && next - previous <= GROWTH_BYTES && this.#acceptsUpdates()) return;
    throw new StoreError("no-space", `Cannot write "${key}": ${this.alarms().join("; ")}`);
  }

  /** Call with the size of each batch on disk. */
  written(bytes: number): void {
    this.#written += bytes;
    const { quotaBytes = Number.POSITIVE_INFINITY } = this.#options;
    if (this.#written >= Math.min(MEASURE_BYTES, quotaBytes / 16)) void this.measure();
  }

  async measure(): Promise<void> {
    this.#measuring ??= this.#measure().finally(() => {
      this.#measuring = undefined;
    });
    await this.#measuring;
  }

  /** Whether a write that was refused is accepted by now. */
  async hasSpaceAgain(): Promise<boolean> {
    if (this.#options.clock.monotonic() - this.#measuredAt < REFUSALS_MS) return false;
    await this.measure();
    return !this.#quotaAlarm && !this.#diskAlarm;
  }

  /** Gives the reserve to the writes that free space. */
  async release(): Promise<void> {
    const { path, log } = this.#options;
    await this.#measuring;
    this.#reserve = 0;
    // The space of the reserve is none for other writes.
    this.#isReleased = true;
    this.#diskAlarm = true;
    this.#arm();
    await rm(join(path, RESERVE_FILE), { force: true });
    await this.measure();
    log.warn("The disk of the store is full; the reserve is released for deletions", { path, freeBytes: this.#free });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#measuring;
  }

  #acceptsUpdates(): boolean {
    const { quotaBytes = Number.POSITIVE_INFINITY } = this.#options;
    // The reserve counts until it is in use. The last bytes are for deletions.
    const free = this.#free + this.#reserve - this.#written;
    return this.sizeBytes < quotaBytes * UPDATES_QUOTA && free >= this.#lowFreeBytes / 2;
  }

  get #lowFreeBytes(): number {
    const share = this.#capacity / LOW_FREE_SHARE;
    if (share >= LOW_FREE_BYTES) return LOW_FREE_BYTES;
    // The reserve of a small disk is smaller than what merging may need.
    return Math.max(share, Math.min(MERGED_SIZES * this.sizeBytes, MERGED_BYTES_MAX) - this.#reserve);
  }

  #arm(): void {
    this.#timer?.cancel();
    if (this.#closed) return;
    const interval = this.#quotaAlarm || this.#diskAlarm ? ALARM_INTERVAL_MS : INTERVAL_MS;
    this.#timer = this.#options.clock.timer(interval, () => {
      this.measure()
        .then(() => this.#fillReserve())
        .catch((error: unknown) => this.#options.log.error("Failed to watch the space of the store", error))
        .finally(() => this.#arm());
    });
  }

  async #measure(): Promise<void> {
    const { path, log } = this.#options;
    const before = this.#written;
    this.#measuredAt = this.#options.clock.monotonic();
    try {
      const [size, { bavail, blocks, bsize }] = await Promise.all([directorySize(path), statfs(path)]);
      this.#size = size;
      this.#free = bavail * bsize;
      this.#capacity = blocks * bsize;
      this.#written -= before;
    } catch (error) {
      // The directory may be removed while the store is in use, as by a test.
      log.v(2)?.error("Cannot measure the store", error, { path });
    }
    this.#update();
  }

  #update(): void {
    const { path, log, quotaBytes = Number.POSITIVE_INFINITY, onQuotaAlarm } = this.#options;
    const quotaAlarm = this.sizeBytes >= (this.#quotaAlarm ? quotaBytes * ALARM_ENDS : quotaBytes);
    const free = this.#free - this.#written;
    const low = this.#lowFreeBytes;
    // A part of what is free after a release becomes the next reserve.
    const enough = 2 * low + (this.#isReleased ? reserveBytes(free, low) : 0);
    const diskAlarm = free < (this.#diskAlarm ? enough : low);
    if (quotaAlarm === this.#quotaAlarm && diskAlarm === this.#diskAlarm) return;
    const hasQuotaAlarmStarted = quotaAlarm && !this.#quotaAlarm;
    const hadAlarm = this.#quotaAlarm || this.#diskAlarm;
    this.#quotaAlarm = quotaAlarm;
    this.#diskAlarm = diskAlarm;
    const reason = this.alarms().join("; ");
    if (reason === "") log.info("The store has space again; all writes are accepted", { path });
    else log.error("The store is out of space", new Error(reason), { path });
    // Measured more often from now on.
    if (!hadAlarm) this.#arm();
    if (hasQuotaAlarmStarted) onQuotaAlarm();
  }

  /** Writes the reserve when there is none, or one of a disk that had less space. */
  async #fillReserve(): Promise<void> {
    if (this.#closed || this.#diskAlarm) return;
    const bytes = reserveBytes(this.#free - this.#written + this.#reserve, this.#lowFreeBytes);
    if (bytes < RESERVE_BYTES_MIN || bytes < 2 * this.#reserve) return;
    const { path, log } = this.#options;
    try {
      await writeReserve(path, bytes);
      this.#free -= bytes - this.#reserve;
      this.#reserve = bytes;
      this.#isReleased = false;
    } catch (error) {
      log.warn("Cannot reserve disk space for deletions", { path, error: String(error) });
      await rm(join(path, RESERVE_FILE), { force: true }).catch(() => {});
    }
  }
}

/** The bytes to reserve of so many that are free, in whole MiB. */
function reserveBytes(free: number, low: number): number {
  return Math.min(RESERVE_BYTES_MAX, MIB * Math.floor(Math.max(0, free - low) / RESERVE_SHARE / MIB));
}

/**
 * Rejects with `no-space` when an existing database in `path` cannot be opened safely. Releases the reserve for that.
 */
export async function ensureSpaceToOpen(path: string): Promise<void> {
  const names = await readdir(path).catch((): string[] => []);
  if (!names.includes("CURRENT") || (await hasSpaceToOpen(path))) return;
  await rm(join(path, RESERVE_FILE), { force: true });
  if (await hasSpaceToOpen(path)) return;
  throw new StoreError(
    "no-space",
    `Cannot open the embedded store in "${path}": its disk has less than ${await bytesToOpen(path)} bytes left. ` +
      "Nothing was changed; free space on it",
  );
}

export async function hasSpaceToOpen(path: string): Promise<boolean> {
  const [{ bavail, bsize }, needed] = await Promise.all([statfs(path), bytesToOpen(path)]);
  return bavail * bsize >= needed;
}

/**
 * Free disk space that opening needs: LevelDB writes its logs to tables and the MANIFEST anew, a log with an incomplete
 * record is copied before, and a failed open leaves the database unreadable.
 */
async function bytesToOpen(path: string): Promise<number> {
  const names = await readdir(path);
  const sum = async (matches: (name: string) => boolean): Promise<number> =>
    (await Promise.all(names.filter(matches).map((name) => sizeOf(join(path, name))))).reduce((a, b) => a + b, 0);
  const logs = await sum((name) => name.endsWith(".log"));
  const manifests = await sum((name) => name.startsWith("MANIFEST-"));
  return Math.min(OPEN_FREE_BYTES, 2 * logs + manifests + OPEN_MARGIN_BYTES);
}

async function directorySize(path: string): Promise<number> {
  const names = (await readdir(path)).filter((name) => name !== RESERVE_FILE);
  const sizes = await Promise.all(names.map((name) => sizeOf(join(path, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** 0 for a file that does not exist: compaction may delete files at any time. */
function sizeOf(file: string): Promise<number> {
  return stat(file).then(
    ({ size }) => size,
    () => 0,
  );
}

/**
 * Random bytes, which no file system compresses. Not synced: file systems allocate the space when it is written, and a
 * sync of 32 MiB would delay the start and the first writes.
 */
async function writeReserve(path: string, bytes: number): Promise<void> {
  const chunk = randomBytes(MIB);
  const file = await open(join(path, RESERVE_FILE), "w", 0o600);
  try {
    for (let written = 0; written < bytes; written += MIB) await file.write(chunk);
  } finally {
    await file.close();
  }
}
