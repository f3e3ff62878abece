import type { Revision } from "../store.ts";

export interface HistoryBudget {
  readonly items: number;
  /** Of the objects as stored. */
  readonly bytes: number;
}

/** What happened at a revision. Several may share one: those that a single write made. */
export interface HistoryEntry {
  readonly revision: Revision;
  readonly size: number;
}

/**
 * What the histories of several caches may take together. When it is too much, the largest forgets the older part of
 * what it has: a kind that changes all the time does not cost the quiet ones their past.
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

  /** Tells that a history takes more, or less, than before. */
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
 * The latest changes, so that a client that was away for a moment need not list again. When either budget
 * is used up the oldest are forgotten, and who asks for them is told 410.
 */
export class History<E extends HistoryEntry> {
  readonly #budget: HistoryBudget;
  readonly #pool: HistoryPool | undefined;
  #changes: (E | undefined)[] = [];
  /** Index of the oldest change that is still kept. */
  #head = 0;
  #bytes = 0;
  #start: Revision;

  constructor(budget: HistoryBudget, start: Revision, pool?: HistoryPool) {
    this.#budget = budget;
    this.#pool = pool;
    this.#start = start;
  }

  /** All changes after this revision are known. */
  get start(): Revision {
    return this.#start;
  }

  get length(): number {
    return this.#changes.length - this.#head;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(change: E): void {
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

  /** Forgets what happened up to `revision`. */
  forget(revision: Revision): void {
    while (this.#head < this.#changes.length && this.#changes[this.#head]!.revision <= revision) this.#drop();
    if (revision > this.#start) this.#start = revision;
    this.#tidy();
  }

  /** Forgets everything: what happened between `revision` and before is not known. */
  restart(revision: Revision): void {
    this.#changes = [];
    this.#head = 0;
    this.#count(-this.#bytes);
    this.#start = revision;
  }

  /** Forgets the older half. */
  halve(): void {
    for (let count = Math.ceil(this.length / 2); count > 0; count--) this.#drop();
    this.#tidy();
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
  }

  /** What was dropped leaves the array when it is half of it. */
  #tidy(): void {
    if (this.#head <= 64 || this.#head <= this.#changes.length / 2) return;
    this.#changes = this.#changes.slice(this.#head);
    this.#head = 0;
  }
}
