/**
 * What the tables and logs of a database hold together: shows, before LevelDB opens it, whether this program can read
 * it, and whether the log of revisions has each revision since the last compaction. When LevelDB finds a damaged record
 * in its log, it drops the rest of the block without a message, which leaves such a gap.
 */
import { type Revision, StoreError } from "../../store.ts";
import { COMPACTED_KEY, FORMAT, FORMAT_KEY, LETTER, LOG_RANGE, REVISION_KEY, revisionOf } from "../keys.ts";
import { decodeNumber } from "../record.ts";
import { entriesBetween, newestEntry } from "./table-file.ts";
import type { BatchOperation } from "./write-batch.ts";

/** As in etcd: clients use 0 for "any revision". */
export const FIRST_REVISION = 1 as Revision;

export interface Gap {
  readonly first: number;
  readonly last: number;
}

interface NewestNumber {
  readonly sequence: number;
  /** Undefined for a deletion. */
  readonly value: Buffer | undefined;
}

interface Interval {
  readonly first: number;
  last: number;
}

const NUMBERS = [FORMAT_KEY, REVISION_KEY, COMPACTED_KEY];
const REVISION_BYTES = 8;

export class StoreContent {
  readonly #numbers = new Map<string, NewestNumber>();
  /** Intervals of revisions in the log, in the order in which they were found. They may overlap. */
  readonly #logged: Interval[] = [];
  /** The same of deletions: of revisions up to the last compaction, where nothing is wrong. */
  readonly #deleted: Interval[] = [];
  #hasEntries = false;

  /** A table without damage, of these keys. The bytes may change afterwards. */
  addTable(bytes: Buffer, { smallest, largest }: { readonly smallest: Buffer; readonly largest: Buffer }): void {
    this.#hasEntries = true;
    for (const key of NUMBERS) {
      if (smallest.compare(key) > 0 || largest.compare(key) < 0) continue;
      const entry = newestEntry(bytes, key);
      if (entry !== undefined)
        this.#addNumber(key, entry.sequence, entry.isDeletion ? undefined : Buffer.from(entry.value));
    }
    if (smallest.compare(LOG_RANGE.lt) >= 0 || largest.compare(LOG_RANGE.gte) < 0) return;
    for (const { key, isDeletion } of entriesBetween(bytes, LOG_RANGE)) this.#addLogEntry(key, isDeletion);
  }

  addOperation({ key, sequence, value }: BatchOperation): void {
    this.#hasEntries = true;
    if (key[0] === LETTER.log) this.#addLogEntry(key, value === undefined);
    else if (NUMBERS.some((each) => each.equals(key))) this.#addNumber(key, sequence, value);
  }

  /** The newest revision that was added; undefined for none. Throws a `StoreError` for a damaged record. */
  get revision(): Revision | undefined {
    return this.#number(REVISION_KEY) as Revision | undefined;
  }

  /** Throws a `StoreError` when this program cannot read what was added. */
  checkFormat(path: string): void {
    if (!this.#hasEntries) return;
    let format: number | undefined;
    try {
      format = this.#number(FORMAT_KEY);
    } catch {
      // Another program's value: the checksum of the block is right.
    }
    if (format === undefined) throw foreignData(path);
    checkFormat(path, format);
  }

  /** The first revisions since the last compaction that the log lacks, or has after the latest one. */
  findGap(): Gap | undefined {
    if (!this.#hasEntries) return undefined;
    const revision = this.revision ?? FIRST_REVISION;
    const oldest = this.#number(COMPACTED_KEY) ?? FIRST_REVISION;
    // Each revision is written once, so that its deletion is newer.
    const deleted = inOrder(this.#deleted).find(({ last }) => last > oldest);
    const end = deleted === undefined ? Number.POSITIVE_INFINITY : Math.max(deleted.first, oldest + 1);
    let next = oldest + 1;
    for (const { first, last } of inOrder(this.#logged)) {
      if (first > next) return { first: next, last: first - 1 };
      next = Math.max(next, last + 1);
      if (deleted !== undefined && next > end) return { first: end, last: deleted.last };
    }
    return gapAtEnd(next, revision);
  }

  #addLogEntry(key: Buffer, isDeletion: boolean): void {
    if (key.length !== 1 + REVISION_BYTES) return;
    const revision = revisionOf(key);
    const intervals = isDeletion ? this.#deleted : this.#logged;
    const latest = intervals.at(-1);
    if (latest !== undefined && revision >= latest.first && revision <= latest.last + 1) {
      latest.last = Math.max(latest.last, revision);
    } else intervals.push({ first: revision, last: revision });
  }

  #addNumber(key: Buffer, sequence: number, value: Buffer | undefined): void {
    const name = key.toString("latin1");
    const known = this.#numbers.get(name);
    if (known === undefined || known.sequence < sequence) this.#numbers.set(name, { sequence, value });
  }

  #number(key: Buffer): number | undefined {
    const record = this.#numbers.get(key.toString("latin1"))?.value;
    return record && decodeNumber(key, record);
  }
}

function inOrder(intervals: readonly Interval[]): readonly Interval[] {
  return intervals.toSorted((a, b) => a.first - b.first);
}

/** Between a log whose next revision would be `next`, and the latest revision. */
export function gapAtEnd(next: number, revision: Revision): Gap | undefined {
  if (next === revision + 1) return undefined;
  return { first: Math.min(next, revision + 1), last: Math.max(next - 1, revision) };
}

export function checkFormat(path: string, format: number): void {
  if (format <= FORMAT) return;
  throw new StoreError(
    "newer-format",
    `Cannot open the embedded store in "${path}": it is of format ${format}, ` +
      `this program supports ${FORMAT}; use a newer one`,
  );
}

export function foreignData(path: string): StoreError {
  return new StoreError(
    "foreign",
    `Cannot open the embedded store in "${path}": it holds data of another program; use another directory`,
  );
}
