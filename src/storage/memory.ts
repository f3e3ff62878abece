import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import { Wakeup } from "../std/wakeup.ts";
import { Expiry } from "./expiry.ts";
import { alreadyExists, checkRevision, conflicting, inRange, storeClosed } from "./failures.ts";
import type {
  KeyValue,
  ListOptions,
  Page,
  Range,
  ReadOptions,
  Revision,
  Store,
  WatchBatch,
  WatchEvent,
  WriteOptions,
} from "./store.ts";

export interface MemoryStoreOptions {
  readonly clock: Clock;
  /** As the other engines take it; this one has nothing to report. */
  readonly log?: Logger | undefined;
}

/**
 * The reference engine: what the others do with files, said in as few words as possible. Nothing survives the process.
 *
 * Every key has its versions, oldest first; a deletion is a version without item. The log has every change in order of
 * revision. Reads at a revision look into the versions, watches walk along the log: a watcher is no more than the
 * revision it has seen last. Worked example:
 *
 *     create /a → 2, update /a → 3, delete /a → 4
 *     versions of /a: 2 → value, 3 → value, 4 → nothing      log: put 2, put 3, delete 4
 *     get /a at 3 → the value of 3; compact(3) forgets version 2 and log entries 2 and 3
 */
export function createMemoryStore(options: MemoryStoreOptions): Store {
  return new MemoryStore(options);
}

interface Version {
  readonly revision: Revision;
  readonly item: KeyValue | undefined;
}

interface Change {
  readonly revision: Revision;
  readonly key: string;
  readonly event: WatchEvent;
}

class MemoryStore implements Store {
  /** As in etcd an empty store is of revision 1: 0 means "any" to clients. */
  #revision = 1 as Revision;
  /** The oldest revision that can be read and watched from. */
  #oldest = 1 as Revision;
  readonly #clock: Clock;
  readonly #versions = new Map<string, Version[]>();
  /** Unbounded until `compact`. */
  #log: Change[] = [];
  readonly #changed = new Wakeup();
  readonly #expiry: Expiry;
  #closed = false;

  constructor({ clock }: MemoryStoreOptions) {
    this.#clock = clock;
    this.#expiry = new Expiry(clock, (key, revision) => {
      if (this.#read(key)?.modified === revision) this.#write(key, undefined);
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
    const keys = [...this.#versions.keys()].filter((key) => inRange(key, range)).sort();
    const items = keys.map((key) => this.#read(key, revision)).filter((item) => item !== undefined);
    const limit = options?.limit ?? items.length;
    return { items: items.slice(0, limit), revision, remaining: Math.max(0, items.length - limit) };
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
    if (current?.modified !== expected) throw conflicting(key, expected, current);
    return this.#write(key, value, options);
  }

  async delete(key: string, expected: Revision): Promise<Revision> {
    this.#check();
    const current = this.#read(key);
    if (current === undefined || current.modified !== expected) throw conflicting(key, expected, current);
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
      const start = this.#log.findIndex((change) => change.revision > seen);
      const changes = this.#log.slice(start).filter((change) => inRange(change.key, range));
      seen = this.#revision;
      yield { events: changes.map((change) => change.event), revision: seen };
    }
  }

  async compact(before: Revision): Promise<void> {
    if (before <= this.#oldest) return this.#check();
    this.#check(before);
    this.#oldest = before;
    this.#log = this.#log.filter((change) => change.revision > before);
    for (const [key, versions] of this.#versions) {
      const shown = versions.findLastIndex((version) => version.revision <= before);
      const kept = versions.slice(Math.max(shown, 0)).filter((v, i) => i > 0 || v.item !== undefined || shown < 0);
      if (kept.length > 0) this.#versions.set(key, kept);
      else this.#versions.delete(key);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#expiry.close();
    this.#changed.notify();
  }

  #check(revision: Revision = this.#revision): void {
    if (this.#closed) throw storeClosed();
    checkRevision(revision, this.#oldest, this.#revision);
  }

  #read(key: string, revision: Revision = this.#revision): KeyValue | undefined {
    return this.#versions.get(key)?.findLast((version) => version.revision <= revision)?.item;
  }

  #write(key: string, value: Uint8Array | undefined, options?: WriteOptions): Revision {
    const previous = this.#read(key);
    const revision = ++this.#revision as Revision;
    const item = value && { key, value, modified: revision, created: previous?.created ?? revision };
    const versions = this.#versions.get(key) ?? [];
    this.#versions.set(key, versions);
    versions.push({ revision, item });
    const event: WatchEvent = item
      ? { type: "put", item, previous }
      : { type: "delete", key, revision, previous: previous! };
    this.#log.push({ revision, key, event });
    if (options?.ttlSeconds !== undefined) {
      this.#expiry.add(key, revision, this.#clock.now() + options.ttlSeconds * 1000);
    }
    this.#changed.notify();
    return revision;
  }
}
