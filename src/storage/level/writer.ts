import { TurnQueue } from "../../std/async/turn-queue.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type KeyValue, type Revision, StoreError, type WatchEvent } from "../store.ts";
import { alreadyExists, revisionConflict } from "../store-errors.ts";
import type { Database, Operation } from "./database.ts";
import { ItemCache } from "./item-cache.ts";
import { headKey, logKey, REVISION_KEY, ttlKey, versionKey } from "./keys.ts";
import { readHead, readItem } from "./mvcc.ts";
import { encodeHead, encodeLogEntry, encodeNumber, encodeTtlEntry, encodeVersion } from "./record.ts";

export interface WriteRequest {
  readonly key: string;
  /** Undefined deletes. */
  readonly value: Uint8Array | undefined;
  /** The revision that the key must have; 0 when it must not exist. */
  readonly expected: Revision;
  /** When the value expires, in milliseconds since 1970. */
  readonly expiresAt?: number | undefined;
}

interface PendingWrite {
  readonly operations: readonly Operation[];
  readonly event: WatchEvent;
  readonly revision: Revision;
  readonly bytes: number;
  readonly expiresAt: number | undefined;
  /** It may wait for others. */
  readonly isDeferrable: boolean;
  readonly commit: PromiseWithResolvers<void>;
}

export interface CommittedWrite {
  readonly event: WatchEvent;
  readonly revision: Revision;
  readonly bytes: number;
  readonly expiresAt: number | undefined;
}

export interface WriterOptions {
  readonly database: () => Database;
  /** Throws when the store refuses the write; lengths in bytes, 0 for no value. */
  readonly admit: (key: string, previous: number, next: number) => void;
  readonly onCommit: (writes: readonly CommittedWrite[]) => void;
  /** Called when a write has failed. */
  readonly onFailure: () => void;
  readonly clock: Pick<Clock, "timer">;
  /** Whether writes of the key may wait for others, to share their sync. */
  readonly isDeferrable: (key: string) => boolean;
}

/** Maximum number of queued writes. Further ones fail with `unavailable`: the disk is too slow. */
const QUEUED_MAX = 16_384;
/** Limits of a batch: a larger one saves nothing and delays its writes. */
const BATCH_WRITES = 1024;
const BATCH_BYTES = 4 * 2 ** 20;
/** A batch of writes that may all wait is written after this time. */
const DEFERRED_MS = 100;
/** Requests that continue in one turn of the event loop after their writes are on disk. */
const COMPLETED_PER_TURN = 8;

/**
 * One queue for all writes. A write is checked against the stored and queued values, gets the next revision and waits.
 * While one batch is synced to disk the next one is queued (group commit). Neither the caller nor watches receive a
 * write before it is on disk.
 */
export class Writer {
  readonly #options: WriterOptions;
  #next: Revision;
  #queue: PendingWrite[] = [];
  /** The latest queued or unsynced write of each key that has one. */
  readonly #latest = new Map<string, PendingWrite>();
  readonly #items = new ItemCache();
  /** As many as there are requests in flight. */
  readonly #completions = new TurnQueue(COMPLETED_PER_TURN);
  #draining: Promise<void> | undefined;
  /** Queued writes that do not wait for others. */
  #urgent = 0;
  #isFlushing = false;
  #endDeferral: (() => void) | undefined;
  #failure: StoreError | undefined;

  constructor(options: WriterOptions, revision: Revision) {
    this.#options = options;
    this.#next = revision;
  }

  /** Set after a failed write; all writes fail with it until `reset`. */
  get failure(): StoreError | undefined {
    return this.#failure;
  }

  /** Continues after the revision on disk. */
  reset(revision: Revision): void {
    this.#failure = undefined;
    this.#next = revision;
    this.#items.clear();
  }

  async write(request: WriteRequest): Promise<Revision> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const pending = this.#latest.get(request.key);
      const previous = pending === undefined ? this.stored(request.key) : itemOf(pending.event);
      if ((previous?.modified ?? 0) === request.expected) return await this.#enqueue(request, previous);
      // The conflict is with a write that is not on disk yet and may fail: waits for it.
      if (pending === undefined) throw rejection(request, previous);
      await pending.commit.promise.catch(() => {});
    }
  }

  /** Resolves when all writes before the call are on disk or have failed. */
  async idle(): Promise<void> {
    this.#isFlushing = true;
    this.#endDeferral?.();
    await this.#draining;
    this.#isFlushing = false;
  }

  /** Resolves when the write of the key that is in progress is on disk or has failed; undefined when there is none. */
  settled(key: string): Promise<void> | undefined {
    return this.#latest.get(key)?.commit.promise.catch(() => {});
  }

  /** The value on disk. */
  stored(key: string): KeyValue | undefined {
    const cached = this.#items.get(key);
    if (cached !== undefined) return cached;
    const database = this.#options.database();
    const head = readHead(database, key);
    const item = head && readItem(database, key, head);
    if (item !== undefined) this.#items.set(item);
    return item;
  }

  async #enqueue(request: WriteRequest, previous: KeyValue | undefined): Promise<Revision> {
    if (this.#queue.length >= QUEUED_MAX) {
      throw new StoreError("unavailable", `Cannot write "${request.key}": ${QUEUED_MAX} writes wait for the disk`);
    }
    this.#options.admit(request.key, previous?.value.length ?? 0, request.value?.length ?? 0);
    const revision = (this.#next + 1) as Revision;
    const isDeferrable = this.#options.isDeferrable(request.key);
    const pending = prepare(request, previous, revision, isDeferrable);
    this.#next = revision;
    this.#queue.push(pending);
    if (!isDeferrable) this.#urgent++;
    if (!isDeferrable || this.#queue.length >= BATCH_WRITES) this.#endDeferral?.();
    this.#latest.set(request.key, pending);
    this.#draining ??= this.#drain();
    await pending.commit.promise;
    return revision;
  }

  async #drain(): Promise<void> {
    // Other writes of this turn of the event loop join the first batch.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.#queue.length > 0) {
      if (this.#urgent === 0 && !this.#isFlushing && this.#queue.length < BATCH_WRITES) await this.#defer();
      const batch = this.#takeBatch();
      try {
        await this.#options.database().write(operationsOf(batch));
      } catch (error) {
        this.#fail(batch, error);
        break;
      }
      this.#settle(batch);
    }
    this.#draining = undefined;
  }

  #defer(): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.timer(DEFERRED_MS, () => this.#endDeferral?.());
      this.#endDeferral = () => {
        this.#endDeferral = undefined;
        timer.cancel();
        resolve();
      };
    });
  }

  #takeBatch(): PendingWrite[] {
    let count = 0;
    let bytes = 0;
    while (count < this.#queue.length && count < BATCH_WRITES && bytes < BATCH_BYTES) {
      bytes += this.#queue[count++]!.bytes;
    }
    const batch = this.#queue.splice(0, count);
    for (const { isDeferrable } of batch) if (!isDeferrable) this.#urgent--;
    return batch;
  }

  #settle(batch: readonly PendingWrite[]): void {
    for (const pending of batch) this.#written(pending);
    this.#options.onCommit(batch);
    for (const { commit } of batch) this.#completions.add(commit.resolve);
  }

  /** The queued writes fail too: they were checked against the failed ones. */
  #fail(batch: readonly PendingWrite[], error: unknown): void {
    this.#failure =
      error instanceof StoreError ? error : new StoreError("unavailable", "Cannot write the store", { cause: error });
    const failed = [...batch, ...this.#queue];
    this.#queue = [];
    this.#urgent = 0;
    this.#latest.clear();
    this.#options.onFailure();
    for (const pending of failed) pending.commit.reject(this.#failure);
  }

  /** Called when the write is on disk. */
  #written(pending: PendingWrite): void {
    const { event } = pending;
    const key = keyOf(event);
    if (this.#latest.get(key) === pending) this.#latest.delete(key);
    if (event.type === "put") this.#items.set(event.item);
    else this.#items.delete(key);
  }
}

function keyOf(event: WatchEvent): string {
  return event.type === "put" ? event.item.key : event.key;
}

function itemOf(event: WatchEvent): KeyValue | undefined {
  return event.type === "put" ? event.item : undefined;
}

function rejection({ key, expected }: WriteRequest, current: KeyValue | undefined): StoreError {
  if (expected === 0 && current !== undefined) return alreadyExists(key, current);
  return revisionConflict(key, expected, current);
}

function prepare(
  request: WriteRequest,
  previous: KeyValue | undefined,
  revision: Revision,
  isDeferrable: boolean,
): PendingWrite {
  const { key, value, expiresAt } = request;
  const created = previous?.created ?? revision;
  const head = headKey(key);
  const version = versionKey(key, revision);
  const log = logKey(revision);
  const record = encodeVersion(version, created, value);
  const operations: Operation[] = [
    { type: "put", key: version, value: record },
    { type: "put", key: log, value: encodeLogEntry(log, { key, previous: previous?.modified ?? (0 as Revision) }) },
    value === undefined
      ? { type: "del", key: head }
      : { type: "put", key: head, value: encodeHead(head, { modified: revision, created }) },
  ];
  if (expiresAt !== undefined) {
    const ttl = ttlKey(revision);
    operations.push({ type: "put", key: ttl, value: encodeTtlEntry(ttl, { key, at: expiresAt }) });
  }
  const commit = Promise.withResolvers<void>();
  const event = eventOf(request, previous, revision);
  return { operations, event, revision, bytes: record.length, expiresAt, isDeferrable, commit };
}

function eventOf({ key, value }: WriteRequest, previous: KeyValue | undefined, revision: Revision): WatchEvent {
  if (value !== undefined) {
    const item = { key, value, modified: revision, created: previous?.created ?? revision };
    return { type: "put", item, previous };
  }
  if (previous === undefined) throw new Error(`Cannot delete "${key}": it does not exist`);
  return { type: "delete", key, revision, previous };
}

function operationsOf(batch: readonly PendingWrite[]): Operation[] {
  const operations = batch.flatMap((pending) => pending.operations);
  operations.push({ type: "put", key: REVISION_KEY, value: encodeNumber(REVISION_KEY, batch.at(-1)!.revision) });
  return operations;
}
