import { Wakeup } from "../std/async/wakeup.ts";
import { SortedObjects } from "../std/collections/sorted-objects.ts";
import { type Logger, silentLogger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import { Compactor } from "./compactor.ts";
import { Expiry } from "./expiry.ts";
import { Leases } from "./leases.ts";
import type {
  KeyValue,
  ListOptions,
  Page,
  Range,
  ReadOptions,
  Revision,
  ScanPart,
  Store,
  WatchBatch,
  WatchEvent,
  WriteOptions,
} from "./store.ts";
import { alreadyExists, checkRevision, inRange, revisionConflict, storeClosed } from "./store-errors.ts";
import { History } from "./watch/history.ts";

export interface MemoryStoreOptions {
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  /** Interval of compaction; none when absent or 0. */
  readonly compactionIntervalMs?: number | undefined;
  /** See `Leases`. */
  readonly leaseReuseSeconds?: number | undefined;
}

/**
 * The reference engine: the semantics of a store in the simplest code. Nothing survives the process.
 *
 * Every key has a list of versions, oldest first; a deletion is a version without item. The log has all changes in
 * order of revision. A read at a revision searches the versions; a watch reads the log from the last revision it
 * delivered. Worked example:
 *
 *     create /a → 2, update /a → 3, delete /a → 4
 *     versions of /a: 2 → value, 3 → value, 4 → nothing      log: put 2, put 3, delete 4
 *     get /a at 3 → the value of 3; compact(3) deletes version 2 and log entries 2 and 3
 */
export function createMemoryStore(options: MemoryStoreOptions): Store {
  return new MemoryStore(options);
}

interface Version {
  readonly revision: Revision;
  readonly item: KeyValue | undefined;
}

interface Versions {
  readonly key: string;
  readonly versions: Version[];
}

interface LogEntry {
  readonly revision: Revision;
  readonly size: number;
  readonly key: string;
  readonly event: WatchEvent;
}

/** The log is bounded by compaction only. */
const UNBOUNDED = { items: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

class MemoryStore implements Store {
  /** As in etcd, an empty store has revision 1: clients use 0 for "any". */
  #revision = 1 as Revision;
  readonly #clock: Clock;
  readonly #keys = new SortedObjects<Versions>();
  /** Starts at the oldest readable revision. */
  readonly #log = new History<LogEntry>(UNBOUNDED, this.#revision);
  readonly #changed = new Wakeup();
  readonly #expiry: Expiry;
  readonly #leases: Leases;
  readonly #compactor: Compactor | undefined;
  #closed = false;

  constructor({ clock, log = silentLogger, compactionIntervalMs = 0, leaseReuseSeconds = 0 }: MemoryStoreOptions) {
    this.#clock = clock;
    this.#leases = new Leases(leaseReuseSeconds);
    this.#expiry = new Expiry(clock, (due) => {
      for (const { key, revision } of due) {
        if (this.#read(key)?.modified === revision) this.#write(key, undefined);
      }
    });
    if (compactionIntervalMs === 0) return;
    this.#compactor = new Compactor({
      clock,
      log,
      intervalMs: compactionIntervalMs,
      retentionMs: compactionIntervalMs,
      current: () => this.#revision,
      compact: (before) => this.compact(before),
    });
  }

  current(): Revision {
    return this.#revision;
  }

  async get(key: string, options?: ReadOptions): Promise<KeyValue | undefined> {
    this.#check(options?.revision);
    return this.#read(key, options?.revision);
  }

  async list(range: Range, options?: ListOptions): Promise<Page> {
    this.#check(options?.revision);
    const revision = options?.revision ?? this.#revision;
    const limit = options?.limit ?? Number.POSITIVE_INFINITY;
    const items: KeyValue[] = [];
    let remaining = 0;
    for (const found of this.#keys.between(range.from, range.to)) {
      const item = itemAt(found, revision);
      if (item === undefined) continue;
      if (items.length < limit) items.push(item);
      else remaining++;
    }
    return { items, revision, remaining };
  }

  async *scan(range: Range, options?: ReadOptions): AsyncIterable<ScanPart> {
    yield await this.list(range, options);
  }

  readVersion(key: string, modified: Revision): Uint8Array | undefined {
    const versions = this.#keys.get(key)?.versions;
    return versions?.findLast(({ revision }) => revision === modified)?.item?.value;
  }

  async create(key: string, value: Uint8Array, options?: WriteOptions): Promise<Revision> {
    this.#check();
    const current = this.#read(key);
    if (current !== undefined) throw alreadyExists(key, current);
    return this.#write(key, value, options);
  }

  async update(key: string, value: Uint8Array, expected: Revision, options?: WriteOptions): Promise<Revision> {
    this.#check();
    const current = this.#read(key);
    if (current?.modified !== expected) throw revisionConflict(key, expected, current);
    return this.#write(key, value, options);
  }

  async delete(key: string, expected: Revision): Promise<Revision> {
    this.#check();
    const current = this.#read(key);
    if (current === undefined || current.modified !== expected) throw revisionConflict(key, expected, current);
    return this.#write(key, undefined);
  }

  async *watch(range: Range, from: Revision, signal: AbortSignal): AsyncIterable<WatchBatch> {
    let seen = from;
    while (!signal.aborted) {
      this.#check(seen);
      if (seen === this.#revision) {
        await this.#changed.wait(signal);
        continue;
      }
      const changes = this.#log.since(seen).filter((change) => inRange(change.key, range));
      seen = this.#revision;
      yield { events: changes.map((change) => change.event), revision: seen };
    }
  }

  async compact(before: Revision): Promise<void> {
    if (before <= this.#log.start) return this.#check();
    this.#check(before);
    // Only keys with changes up to `before` have versions to delete.
    const keys = new Set<string>();
    for (const change of this.#log.since(this.#log.start)) {
      if (change.revision > before) break;
      keys.add(change.key);
    }
    this.#log.forget(before);
    for (const key of keys) this.#compactKey(key, before);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#expiry.close();
    this.#compactor?.close();
    this.#changed.notify();
  }

  #check(revision: Revision = this.#revision): void {
    if (this.#closed) throw storeClosed();
    checkRevision(revision, this.#log.start, this.#revision);
  }

  #read(key: string, revision: Revision = this.#revision): KeyValue | undefined {
    const found = this.#keys.get(key);
    return found && itemAt(found, revision);
  }

  #compactKey(key: string, before: Revision): void {
    const versions = this.#keys.get(key)?.versions ?? [];
    const shown = versions.findLastIndex((version) => version.revision <= before);
    const kept = versions.slice(Math.max(shown, 0)).filter((v, i) => i > 0 || v.item !== undefined || shown < 0);
    if (kept.length > 0) this.#keys.set({ key, versions: kept });
    else this.#keys.delete(key);
  }

  #write(key: string, value: Uint8Array | undefined, options?: WriteOptions): Revision {
    const previous = this.#read(key);
    const revision = ++this.#revision as Revision;
    const item = value && { key, value, modified: revision, created: previous?.created ?? revision };
    const versions = this.#keys.get(key)?.versions;
    if (versions === undefined) this.#keys.set({ key, versions: [{ revision, item }] });
    else versions.push({ revision, item });
    const event: WatchEvent = item
      ? { type: "put", item, previous }
      : { type: "delete", key, revision, previous: previous! };
    this.#log.push({ revision, size: 0, key, event });
    if (options?.ttlSeconds !== undefined) {
      this.#expiry.schedule(key, revision, this.#leases.expiresAt(options.ttlSeconds, this.#clock.now()));
    }
    this.#changed.notify();
    return revision;
  }
}

function itemAt({ versions }: Versions, revision: Revision): KeyValue | undefined {
  return versions.findLast((version) => version.revision <= revision)?.item;
}
