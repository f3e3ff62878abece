/**
 * The file REVISION beside LevelDB's files: a revision that the store has reached. A store of a lower revision has lost
 * acknowledged writes, which the end of its log alone cannot show: a log that lost its end looks like one that was
 * shorter. Written in place about once a second while there are writes, without a sync, at the end, and after a failed
 * write: LevelDB counts its operations, and may name them in MANIFEST, although its log does not have them.
 */
import { constants, type FileHandle, open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Clock, Timer } from "../../../std/time/clock.ts";
import type { Revision } from "../../store.ts";

export const REVISION_FILE = "REVISION";

const INTERVAL_MS = 1000;
const DIGITS = 16;

export interface ReachedRevision {
  readonly revision: number;
  /** The number of a write-ahead log that has some of the latest revisions; 0 when that is not certain. */
  readonly log: number;
}

/** In place of the number of the log: a write after the revision has failed. */
const FAILED_WRITE = 10 ** 15;

export function hasFailedWrite({ log }: ReachedRevision): boolean {
  return log === FAILED_WRITE;
}

/** Undefined when the file does not exist or is damaged: then nothing can be checked with it. */
export async function readRevisionFile(path: string): Promise<ReachedRevision | undefined> {
  let text: string;
  try {
    text = await readFile(join(path, REVISION_FILE), "latin1");
  } catch {
    return undefined;
  }
  const [revision, log] = text.split(" ").map(Number);
  const reached = { revision: revision ?? Number.NaN, log: log ?? Number.NaN };
  return text === format(reached) ? reached : undefined;
}

export class RevisionFile {
  readonly #path: string;
  readonly #clock: Clock;
  #revision: number;
  #written = 0;
  /** The newest log, and the revision when it was first seen: later revisions are in it or in newer logs. */
  #log: { readonly number: number; readonly since: number };
  #timer: Timer | undefined;
  #file: FileHandle | undefined;
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string, clock: Clock, log: { readonly number: number; readonly since: number }) {
    this.#path = path;
    this.#clock = clock;
    this.#revision = log.since;
    this.#log = log;
  }

  /** For the database in `path`, which LevelDB has just opened at this revision. */
  static async open(path: string, clock: Clock, revision: Revision): Promise<RevisionFile> {
    return new RevisionFile(path, clock, { number: await newestLog(path), since: revision });
  }

  /** Call when all writes up to this revision are on disk. */
  update(revision: Revision): void {
    this.#revision = revision;
    this.#timer ??= this.#clock.timer(INTERVAL_MS, () => {
      this.#timer = undefined;
      this.#writing = this.#writing.then(() => this.#write());
    });
  }

  /**
   * Call when a write has failed; `revision` is that of the last one on disk. Resolves with whether the record is on
   * disk, which shows that the disk accepts writes again.
   */
  async recordFailure(revision: Revision): Promise<boolean> {
    this.#revision = revision;
    const storing = this.#writing.then(() => this.#store({ revision, log: FAILED_WRITE }, true));
    this.#writing = storing.then(() => {});
    return await storing;
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#writing;
    await this.#write();
    await this.#file?.sync().catch(() => {});
    await this.#file?.close();
    this.#file = undefined;
  }

  /** A failure, as of a full disk, leaves an older revision, which is a weaker check and no damage. */
  async #write(): Promise<void> {
    const revision = this.#revision;
    if (revision <= this.#written) return;
    try {
      const number = await newestLog(this.#path);
      if (number !== this.#log.number) this.#log = { number, since: this.#revision };
      await this.#store({ revision, log: revision > this.#log.since ? number : 0 });
    } catch {}
  }

  /** Whether it succeeded. */
  async #store(reached: ReachedRevision, isSynced = false): Promise<boolean> {
    try {
      this.#file ??= await open(join(this.#path, REVISION_FILE), constants.O_WRONLY | constants.O_CREAT, 0o600);
      await this.#file.write(format(reached), 0);
      if (isSynced) await this.#file.sync();
      this.#written = reached.revision;
      return true;
    } catch {
      return false;
    }
  }
}

async function newestLog(path: string): Promise<number> {
  const names = await readdir(path);
  return Math.max(0, ...names.filter((name) => /^\d+\.log$/.test(name)).map((name) => Number.parseInt(name, 10)));
}

/** All of one length, so that a text replaces another one completely. */
function format({ revision, log }: ReachedRevision): string {
  const digits = [revision, log].map((number) => String(number).padStart(DIGITS, "0")).join(" ");
  return `${digits} ${crc32(digits).toString(16).padStart(8, "0")}\n`;
}
