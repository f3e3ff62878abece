/** The engine for etcd v3: the keys and values of Kubernetes, so that both can use one another's data. */
import type { Connector } from "../../client/transport/connector.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
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
  type WriteOptions,
} from "../store.ts";
import { alreadyExists, revisionConflict, storeClosed } from "../store-errors.ts";
import { COMPACT_REVISION_KEY, EtcdCompactor } from "./compactor.ts";
import { CallError } from "./endpoint.ts";
import { isLeaseNotFound, toStoreError } from "./errors.ts";
import { EtcdLeases } from "./leases.ts";
import {
  alarmMethod,
  alarmTypes,
  CompareTarget,
  compactMethod,
  type RangeResponse,
  rangeMethod,
  statusMethod,
  type TxnRequest,
  type TxnResponse,
  txnMethod,
} from "./protocol.ts";
import { Servers } from "./servers.ts";
import type { StoreTlsFiles } from "./tls.ts";
import { EtcdWatch, toKeyValue } from "./watch.ts";

export interface EtcdStoreOptions {
  /** `http://127.0.0.1:2379`; at least one. */
  readonly urls: readonly string[];
  readonly tls?: StoreTlsFiles | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 turns compaction off. */
  readonly compactionIntervalMs: number;
  /** See `Leases`. */
  readonly leaseReuseSeconds?: number | undefined;
  /** Interval at which the size and the alarms are read; 0 turns that off. */
  readonly statusIntervalMs?: number | undefined;
  /** How to connect to the servers; undefined: directly. */
  readonly connector?: Connector | undefined;
}

/** A server that does not respond fails the start after this time. */
const OPEN_MS = 20_000;
/** Items of the first part of a scan; the next ones have about `PART_BYTES`. */
const PART_ITEMS = 500;
const PART_BYTES = 2 ** 20;
const PROGRESS_MS = 100;

/** Rejects with a `StoreError` when no server responds. */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<Store> {
  const store = new EtcdStore(options);
  try {
    await store.connect();
    return store;
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

type Operation = NonNullable<TxnRequest["success"]>[number];

interface Written {
  readonly response: TxnResponse;
  /** Whether the request was sent again after a server may have processed it. */
  readonly isRepeated: boolean;
}

class EtcdStore implements Store {
  readonly #options: EtcdStoreOptions;
  readonly #servers: Servers;
  readonly #leases: EtcdLeases;
  readonly #watches = new Set<EtcdWatch>();
  readonly #closing = new AbortController();
  #compactor: EtcdCompactor | undefined;
  #revision = 0;
  #read: Promise<unknown> = Promise.resolve();
  /** The read that starts when `#read` ends. */
  #nextRead: Promise<Revision> | undefined;
  /** The revision that readers wait for. */
  #wanted = 0 as Revision;
  #progressTimer: Timer | undefined;
  #statusTimer: Timer | undefined;
  #status: StoreStatus = { sizeBytes: 0, quotaBytes: undefined, alarms: [] };

  constructor(options: EtcdStoreOptions) {
    const { urls, tls = {}, clock, leaseReuseSeconds = 0, connector } = options;
    this.#options = options;
    this.#servers = new Servers({ urls, tls, clock, connector });
    this.#leases = new EtcdLeases(this.#servers, clock, leaseReuseSeconds);
  }

  async connect(): Promise<void> {
    const { clock, log, compactionIntervalMs: intervalMs, statusIntervalMs = 0 } = this.#options;
    await this.#rejectIncomplete();
    if (intervalMs > 0) this.#compactor = new EtcdCompactor({ servers: this.#servers, clock, log, intervalMs });
    if (statusIntervalMs > 0) await this.#pollStatus(statusIntervalMs);
  }

  current(): Revision {
    return this.#revision as Revision;
  }

  /**
   * Reads from a majority of the servers. Requests that come while a read is in progress share the next one, so that
   * their number does not grow with that of the requests.
   */
  async readRevision(): Promise<Revision> {
    this.#check();
    this.#nextRead ??= this.#startRead();
    return await this.#nextRead;
  }

  async get(key: string, { revision }: ReadOptions = {}): Promise<KeyValue | undefined> {
    const { kvs } = await this.#range({ key: Buffer.from(key), revision: revision ?? 0 });
    const found = kvs?.[0];
    return found && toKeyValue(found);
  }

  async list(range: Range, { revision, limit }: ListOptions = {}): Promise<Page> {
    if (range.from >= range.to) return { items: [], revision: revision ?? (await this.readRevision()), remaining: 0 };
    const response = await this.#range({
      key: Buffer.from(range.from),
      rangeEnd: Buffer.from(range.to),
      revision: revision ?? 0,
      limit: limit ?? 0,
      countOnly: limit === 0,
    });
    const items = (response.kvs ?? []).map(toKeyValue);
    return {
      items,
      revision: revision ?? this.#revisionOf(response),
      remaining: (response.count ?? items.length) - items.length,
    };
  }

  async *scan(range: Range, options: ReadOptions = {}): AsyncIterable<ScanPart> {
    let { revision } = options;
    let limit = PART_ITEMS;
    for (let { from } = range; ; ) {
      const page: Page = await this.list({ from, to: range.to }, { revision, limit });
      revision = page.revision;
      yield { items: page.items, revision };
      const last = page.items.at(-1);
      if (page.remaining === 0 || last === undefined) return;
      from = `${last.key}\0`;
      const bytes = page.items.reduce((sum, { value }) => sum + value.length, 0) / page.items.length;
      limit = Math.max(1, Math.min(10_000, Math.floor(PART_BYTES / Math.max(bytes, 1))));
    }
  }

  /** Values are not kept here: the items are marked as pinned. */
  readVersion(): Uint8Array | undefined {
    return undefined;
  }

  async create(key: string, value: Uint8Array, options?: WriteOptions): Promise<Revision> {
    const { revision, current } = await this.#put(key, value, 0, options);
    if (revision === undefined) throw alreadyExists(key, current!);
    return revision;
  }

  async update(key: string, value: Uint8Array, expected: Revision, options?: WriteOptions): Promise<Revision> {
    const { revision, current } = await this.#put(key, value, expected, options);
    if (revision === undefined) throw revisionConflict(key, expected, current);
    return revision;
  }

  async delete(key: string, expected: Revision): Promise<Revision> {
    const { response } = await this.#write(key, expected, { deleteRange: { key: Buffer.from(key) } }, false);
    if (response.succeeded === true) return this.#revisionOf(response);
    throw revisionConflict(key, expected, currentOf(response));
  }

  async *watch(range: Range, from: Revision, signal: AbortSignal): AsyncIterable<WatchBatch> {
    if (signal.aborted) return;
    this.#check();
    if (from > this.#revision && from > (await this.readRevision())) {
      throw new StoreError("future-revision", `Cannot show revision ${from}: the latest is ${this.#revision}`);
    }
    const endpoint = this.#servers.active;
    const watch = new EtcdWatch({
      endpoint,
      range,
      from,
      signal: AbortSignal.any([signal, this.#closing.signal]),
      onRevision: (revision) => this.#advance(revision),
    });
    this.#watches.add(watch);
    try {
      yield* watch.batches();
      if (!signal.aborted) this.#check();
    } catch (error) {
      if (error instanceof StoreError && error.code === "unavailable") this.#servers.fail(endpoint);
      throw error;
    } finally {
      this.#watches.delete(watch);
    }
  }

  async compact(before: Revision): Promise<void> {
    this.#check();
    try {
      await this.#call(() => this.#servers.call(compactMethod, { revision: before }));
    } catch (error) {
      // It is done already.
      if (!(error instanceof StoreError && error.code === "compacted")) throw error;
    }
  }

  status(): StoreStatus {
    return this.#status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(storeClosed());
    this.#progressTimer?.cancel();
    this.#statusTimer?.cancel();
    this.#compactor?.[Symbol.dispose]();
    this.#servers[Symbol.dispose]();
  }

  /** The first request, which shows whether a server responds. */
  async #rejectIncomplete(): Promise<void> {
    const { kvs } = await this.#range({ key: INCOMPLETE_KEY }, OPEN_MS);
    if (kvs?.[0] === undefined) return;
    throw new StoreError(
      "corrupt",
      "Cannot use the store: svc kvstore is writing it, or was interrupted: wait for it, or run it again",
    );
  }

  async #startRead(): Promise<Revision> {
    await this.#read;
    this.#nextRead = undefined;
    // A read of any key has the revision in its header.
    const response = this.#range({ key: COMPACT_REVISION_KEY, countOnly: true });
    this.#read = response.catch(() => {});
    this.#wanted = this.#revisionOf(await response);
    this.#requestProgress();
    return this.#wanted;
  }

  /** Watches that see no change of their own keys report the revision only when it is requested. */
  #requestProgress(): void {
    const behind = [...this.#watches].filter((watch) => !watch.hasReached(this.#wanted));
    for (const watch of behind) watch.requestProgress(this.#wanted);
    if (behind.length === 0 || this.#progressTimer !== undefined) return;
    this.#progressTimer = this.#options.clock.timer(PROGRESS_MS, () => {
      this.#progressTimer = undefined;
      this.#requestProgress();
    });
  }

  /** Puts the value if the key has the revision; 0 for a key without value. */
  async #put(
    key: string,
    value: Uint8Array,
    expected: Revision | 0,
    { ttlSeconds }: WriteOptions = {},
  ): Promise<{ readonly revision?: Revision; readonly current?: KeyValue | undefined }> {
    const put = async (): Promise<Written> => {
      const lease = ttlSeconds === undefined ? 0n : await this.#call(() => this.#leases.leaseFor(ttlSeconds));
      return await this.#write(key, expected, { put: { key: Buffer.from(key), value, lease } }, true);
    };
    let written: Written;
    try {
      written = await put();
    } catch (error) {
      if (!(error instanceof StoreError) || !isLeaseNotFound(error.cause)) throw error;
      this.#leases.forget();
      written = await put();
    }
    const { response, isRepeated } = written;
    if (response.succeeded === true) return { revision: this.#revisionOf(response) };
    const current = currentOf(response);
    return isRepeated ? await this.#findFirst(key, value, expected, current) : { current };
  }

  /**
   * The result of a write that was repeated and found another revision: its first request may have been processed, and
   * overwritten since. Rejects with `unavailable` when the history does not show it.
   */
  async #findFirst(
    key: string,
    value: Uint8Array,
    expected: Revision | 0,
    current: KeyValue | undefined,
  ): Promise<{ readonly revision?: Revision; readonly current?: KeyValue | undefined }> {
    let found = current;
    try {
      for (let step = 0; step < HISTORY_STEPS_MAX && found !== undefined && found.modified > expected; step++) {
        if (Buffer.compare(found.value, value) === 0) return { revision: found.modified };
        found = await this.get(key, { revision: (found.modified - 1) as Revision });
      }
    } catch (cause) {
      throw unknownOutcome(key, cause);
    }
    if (found === undefined || found.modified !== expected) throw unknownOutcome(key);
    return { current };
  }

  async #write(key: string, expected: Revision | 0, operation: Operation, isRepeatable: boolean): Promise<Written> {
    const bytes = Buffer.from(key);
    const request: TxnRequest = {
      compare: [{ result: 0, target: CompareTarget.modRevision, key: bytes, modRevision: expected }],
      success: [operation],
      failure: [{ range: { key: bytes } }],
    };
    return await this.#call(async () => {
      try {
        const response = await this.#servers.call(txnMethod, request, { isRepeatable: false });
        return { response, isRepeated: false };
      } catch (error) {
        if (!isRepeatable || !(error instanceof CallError) || !error.isUnavailable || !error.wasSent) throw error;
        return { response: await this.#servers.call(txnMethod, request), isRepeated: true };
      }
    });
  }

  async #range(request: NonNullable<Parameters<typeof toRangeRequest>[0]>, retryMs?: number): Promise<RangeResponse> {
    const response = await this.#call(() =>
      this.#servers.call(rangeMethod, toRangeRequest(request), retryMs === undefined ? {} : { retryMs }),
    );
    this.#advance(response.header?.revision ?? 0);
    return response;
  }

  async #call<R>(send: () => Promise<R>): Promise<R> {
    this.#check();
    try {
      return await send();
    } catch (error) {
      this.#check();
      throw toStoreError(error);
    }
  }

  #revisionOf({ header }: Pick<RangeResponse, "header">): Revision {
    const revision = header?.revision ?? 0;
    this.#advance(revision);
    return revision as Revision;
  }

  #advance(revision: number): void {
    if (revision > this.#revision) this.#revision = revision;
  }

  #check(): void {
    if (this.#closing.signal.aborted) throw storeClosed();
  }

  async #pollStatus(intervalMs: number): Promise<void> {
    try {
      const [{ dbSize }, { alarms }] = await Promise.all([
        this.#servers.call(statusMethod, {}),
        this.#servers.call(alarmMethod, {}),
      ]);
      const types = new Set((alarms ?? []).map(({ alarm }) => alarmTypes[alarm as keyof typeof alarmTypes]));
      const found: StoreAlarm[] = [...types].filter(Boolean).map((type) => ({ type, message: alarmMessages[type] }));
      this.#status = { sizeBytes: dbSize ?? 0, quotaBytes: undefined, alarms: found };
    } catch (error) {
      this.#options.log.warn("Cannot read the status of the store", { error: String(error) });
    }
    if (this.#closing.signal.aborted) return;
    this.#statusTimer = this.#options.clock.timer(intervalMs, () => void this.#pollStatus(intervalMs));
  }
}

const alarmMessages = {
  NOSPACE: "etcd is above its quota and accepts no writes: compact and defragment it, then disarm the alarm",
  CORRUPT: "etcd found that its members' data differ: see https://etcd.io/docs/latest/op-guide/data_corruption/",
} as const;

/** Present while `svc kvstore` writes a store: its objects are not complete yet. */
export const INCOMPLETE_KEY = Buffer.from("svc_kvstore_incomplete");

/** Values that are read to find the one of a lost request. */
const HISTORY_STEPS_MAX = 16;

function unknownOutcome(key: string, cause?: unknown): StoreError {
  return new StoreError(
    "unavailable",
    `Cannot use the store: the connection was lost during a write of "${key}", which may have taken effect`,
    { cause },
  );
}

interface RangeRequest {
  readonly key: Uint8Array;
  readonly rangeEnd?: Uint8Array;
  readonly revision?: number;
  readonly limit?: number;
  readonly countOnly?: boolean;
}

function toRangeRequest({ key, rangeEnd, revision = 0, limit = 0, countOnly = false }: RangeRequest) {
  return { key, rangeEnd: rangeEnd ?? EMPTY, limit, revision, keysOnly: false, countOnly };
}

const EMPTY = new Uint8Array(0);

/** The value that made a write fail. */
function currentOf({ responses }: TxnResponse): KeyValue | undefined {
  const found = responses?.[0]?.range?.kvs?.[0];
  return found && toKeyValue(found);
}
