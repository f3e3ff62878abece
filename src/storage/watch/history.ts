import type { Revision } from "../store.ts";

export interface HistoryBudget {
  readonly items: number;
  /** Bytes of the stored values. */
  readonly bytes: number;
  /** Milliseconds after which changes are dropped, up to `MARK_MS` later; never when absent. */
  readonly ageMs?: number;
}

/** The changes of this time are dropped together when they are too old. */
const MARK_MS = 30_000;
/** That are kept whatever their age, so that clients resume watches of quiet kinds after hours. */
const RECENT_ITEMS = 100;

/** A change. */
export interface HistoryEntry {
  readonly revision: Revision;
  readonly size: number;
  /** Called when the history drops the change. */
  release?(): void;
}

/**
 * Bounds the bytes of the histories of all caches together. Above the limit the largest history drops its older half:
 * a kind with many changes does not cost the others their history.
 */
export class HistoryPool {
  readonly #bytesMax: number;
  readonly #members = new Set<History<HistoryEntry>>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds the change of size of a history. */
  add(history: History<HistoryEntry>, bytes: number): void {
    this.#bytes += bytes;
    if (history.length > 0) this.#members.add(history);
    else this.#members.delete(history);
    while (bytes > 0 && this.#bytes > this.#bytesMax) {
      let largest = history;
      for (const other of this.#members) if (other.bytes > largest.bytes) largest = other;
      if (largest.length === 0) return;
      largest.halve();
    }
  }
}

/**
 * The latest changes, from which clients resume watches. When a limit is reached the oldest changes are dropped; a
 * watch from before them reads the store, or gets 410.
 */
export class History<E extends HistoryEntry> {
  readonly #budget: HistoryBudget;
  readonly #pool: HistoryPool | undefined;
  #changes: (E | undefined)[] = [];
  /** Index of the oldest change. */
  #head = 0;
  #bytes = 0;
  #start: Revision;
  /** Revisions that the history had at times, oldest first: at most `ageMs` / `MARK_MS` and one. */
  #marks: { readonly revision: Revision; readonly at: number }[] = [];

  constructor(budget: HistoryBudget, start: Revision, pool?: HistoryPool) {
    this.#budget = budget;
    this.#pool = pool;
    this.#start = start;
  }

  /** The history has all changes after this revision. */
  get start(): Revision {
    return this.#start;
  }

  get length(): number {
    return this.#changes.length - this.#head;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `now`: monotonic milliseconds, for a budget with an age. */
  push(change: E, now = 0): void {
    if (this.#budget.ageMs !== undefined) this.#dropOld(now, this.#budget.ageMs);
    this.#changes.push(change);
    this.#count(change.size);
    while (this.length > this.#budget.items || (this.#bytes > this.#budget.bytes && this.length > 1)) {
      this.#drop();
    }
    this.#tidy();
  }

  /** Changes after `revision`, oldest first. */
  since(revision: Revision): E[] {
    let low = this.#head;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#changes[middle]!.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return this.#changes.slice(low) as E[];
  }

  /** Drops the changes up to `revision`. */
  forget(revision: Revision): void {
    while (this.#head < this.#changes.length && this.#changes[this.#head]!.revision <= revision) this.#drop();
    if (revision > this.#start) this.#start = revision;
    this.#tidy();
  }

  /** Drops all changes; the history starts at `revision`. */
  restart(revision: Revision): void {
    for (const change of this.#changes) change?.release?.();
    this.#changes = [];
    this.#marks = [];
    this.#head = 0;
    this.#count(-this.#bytes);
    this.#start = revision;
  }

  /** Drops the older half. */
  halve(): void {
    for (let count = Math.ceil(this.length / 2); count > 0; count--) this.#drop();
    this.#tidy();
  }

  /** Called with each change: the history of a kind without changes does not grow. */
  #dropOld(now: number, ageMs: number): void {
    const latest = this.#changes.at(-1);
    if (latest === undefined) return;
    const mark = this.#marks.at(-1);
    if (mark === undefined || now - mark.at >= MARK_MS) this.#marks.push({ revision: latest.revision, at: now });
    for (let [oldest] = this.#marks; oldest !== undefined && now - oldest.at > ageMs; [oldest] = this.#marks) {
      this.#marks.shift();
      while (this.length > RECENT_ITEMS && this.#changes[this.#head]!.revision <= oldest.revision) this.#drop();
    }
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#pool?.add(this, bytes);
  }

  #drop(): void {
    const oldest = this.#changes[this.#head]!;
    this.#changes[this.#head++] = undefined;
    this.#start = oldest.revision;
    this.#count(-oldest.size);
    oldest.release?.();
  }

  /** Removes dropped entries from the array when they are half of it. */
  #tidy(): void {
    if (this.#head <= 64 || this.#head <= this.#changes.length / 2) return;
    this.#changes = this.#changes.slice(this.#head);
    this.#head = 0;
  }
}
