/**
 * Revisioned values under keys, with etcd's semantics. Engines: `memory.ts`, `level/`, `kvstore3/`. Each one runs the
 * test suite `src/testing/storage/conformance.ts`.
 *
 * Guarantees of every engine:
 * - One revision counter. Each successful write takes the next revision; revisions are never reused, restarts included.
 * - An acknowledged write is durable, as far as the engine is.
 * - Reads see every write acknowledged before they were called. Lists are one consistent snapshot.
 * - A watch delivers each change after its `from` revision exactly once, in revision order, or fails with `compacted`.
 */

declare const revision: unique symbol;
/** An integer; clients see it as the opaque `resourceVersion`. */
export type Revision = number & { readonly [revision]: true };

export interface KeyValue {
  readonly key: string;
  readonly value: Uint8Array;
  /** Revision of the write of this value. */
  readonly modified: Revision;
  /** Revision of the write that created the key. */
  readonly created: Revision;
  /** The value is to be rewritten although it is the same: it is encrypted with an older key. */
  readonly isStale?: boolean;
  /** The value stays in memory where it is cached: to read it again may need a call of a KMS plugin. */
  readonly isPinned?: boolean;
  /** Of an event: why the value cannot be decrypted. The watch goes on, since it may be of all resources. */
  readonly failure?: StoreError;
}

/** Keys `from <= key < to`. `prefixRange(p)` is the range of all keys that start with `p`. */
export interface Range {
  readonly from: string;
  readonly to: string;
}

export interface ReadOptions {
  /** Reads at this revision; at the latest when absent. */
  readonly revision?: Revision | undefined;
}

export interface ListOptions extends ReadOptions {
  /** Maximum number of items; unlimited when absent. */
  readonly limit?: number | undefined;
}

export interface Page {
  readonly items: readonly KeyValue[];
  /** The revision of the snapshot. */
  readonly revision: Revision;
  /** Number of items of the range after the last one of the page. */
  readonly remaining: number;
}

/** A part of a scan, in key order. All parts are of one snapshot. */
export interface ScanPart {
  readonly items: readonly KeyValue[];
  readonly revision: Revision;
}

export interface WriteOptions {
  /** The value is deleted this many seconds after the write, by a write with its own revision. */
  readonly ttlSeconds?: number | undefined;
}

export type WatchEvent =
  | { readonly type: "put"; readonly item: KeyValue; readonly previous: KeyValue | undefined }
  | { readonly type: "delete"; readonly key: string; readonly revision: Revision; readonly previous: KeyValue };

export interface WatchBatch {
  readonly events: readonly WatchEvent[];
  /** All changes up to this revision have been delivered. */
  readonly revision: Revision;
}

export interface Store extends AsyncDisposable {
  /** The revision of the latest write; of a store that others write to as well, of the latest one known here. */
  current(): Revision;
  /**
   * Of a store that others write to as well: resolves with a revision that is not older than any write that was
   * acknowledged before the call.
   */
  readRevision?(): Promise<Revision>;
  get(key: string, options?: ReadOptions): Promise<KeyValue | undefined>;
  list(range: Range, options?: ListOptions): Promise<Page>;
  /** The state of the range, in parts of about a MiB; at least one. */
  scan(range: Range, options?: ReadOptions): AsyncIterable<ScanPart>;
  /** The value that was written at `modified`; undefined when it has been compacted. */
  readVersion(key: string, modified: Revision): Uint8Array | undefined;
  /** Fails with `exists` when the key has a value. */
  create(key: string, value: Uint8Array, options?: WriteOptions): Promise<Revision>;
  /** Fails with `conflict`, with the current value, unless the key's value is of revision `expected`. */
  update(key: string, value: Uint8Array, expected: Revision, options?: WriteOptions): Promise<Revision>;
  /** Fails like `update`. Resolves with the revision of the deletion. */
  delete(key: string, expected: Revision): Promise<Revision>;
  /** Changes after `from` (exclusive). Ends when `signal` aborts. */
  watch(range: Range, from: Revision, signal: AbortSignal): AsyncIterable<WatchBatch>;
  /** Deletes history before `before`; current values stay. */
  compact(before: Revision): Promise<void>;
  /** Undefined for an engine that keeps nothing on disk. */
  status?(): StoreStatus | undefined;
}

export interface StoreStatus {
  readonly sizeBytes: number;
  /** Undefined for none. */
  readonly quotaBytes: number | undefined;
  readonly alarms: readonly StoreAlarm[];
  /** What this process has written to the log of the store; undefined for a remote one. */
  readonly log?: StoreLog | undefined;
}

export interface StoreLog {
  readonly bytes: number;
  /** Batches that were synced. */
  readonly syncs: number;
}

/**
 * NOSPACE and CORRUPT are those of etcd: only deletions and small updates are accepted; damage was found. FAILED:
 * writes fail.
 */
export const storeAlarmTypes = ["NOSPACE", "CORRUPT", "FAILED"] as const;

export interface StoreAlarm {
  readonly type: (typeof storeAlarmTypes)[number];
  /** A sentence for an operator. */
  readonly message: string;
}

export type StoreErrorCode =
  | "exists"
  | "conflict"
  | "compacted"
  | "future-revision"
  | "locked"
  | "corrupt"
  | "newer-format"
  | "foreign"
  | "no-space"
  | "closed"
  | "unavailable"
  | "undecryptable"
  | "unencryptable";

export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly code: StoreErrorCode;
  /**
   * With `conflict` and `exists`: the current value of the key; undefined for none. With `undecryptable` and `corrupt`:
   * the value that cannot be read, where the error is of a single one.
   */
  readonly current: KeyValue | undefined;

  constructor(code: StoreErrorCode, message: string, options?: { cause?: unknown; current?: KeyValue | undefined }) {
    super(message, { cause: options?.cause });
    this.code = code;
    this.current = options?.current;
  }
}

export function prefixRange(prefix: string): Range {
  return { from: prefix, to: `${prefix.slice(0, -1)}${String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)}` };
}

/** A revision that is not older than any write that was acknowledged before the call. */
export async function latestRevision(store: Pick<Store, "current" | "readRevision">): Promise<Revision> {
  return (await store.readRevision?.()) ?? store.current();
}
