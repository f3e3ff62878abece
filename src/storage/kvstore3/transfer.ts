/** Reads and writes all objects of an etcd at once: for snapshots, restores and migrations. */

import { Buffer } from "node:buffer";
import type { GrpcMethod } from "../../schema/protobuf/grpc-method.ts";
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { RestoreResult, Snapshot, SnapshotItem } from "../maintenance/snapshot.ts";
import { prefixRange, type Range, type Revision } from "../store.ts";
import { toStoreError } from "./errors.ts";
import { INCOMPLETE_KEY } from "./kvstore3.ts";
import {
  CompareTarget,
  compactMethod,
  deleteRangeMethod,
  type EtcdKeyValue,
  leaseGrantMethod,
  leaseTimeToLiveMethod,
  putMethod,
  type RangeRequest,
  type RangeResponse,
  rangeMethod,
  txnMethod,
} from "./protocol.ts";
import { Servers } from "./servers.ts";
import type { StoreTlsFiles } from "./tls.ts";

/** A part of a read has at most so many items, and about so many bytes. */
const PART_ITEMS = 500;
const PART_BYTES = 2 ** 20;
/** Writes in progress at a time: etcd commits them together. */
const WRITES = 128;
/** Values per lease, as of an API server. */
const LEASE_VALUES = 1000;
/** Each revision takes one write, of which etcd accepts some thousands a second: these take about an hour. */
const RAISE_MAX = 10_000_000;
/** Versions of the key that raises the revision are removed after so many. */
const COMPACT_WRITES = 50_000;

const EMPTY = new Uint8Array(0);

export interface EtcdTransferOptions {
  readonly urls: readonly string[];
  readonly tls: StoreTlsFiles;
  /** `/registry/` */
  readonly prefix: string;
  readonly clock: Clock;
}

export interface EtcdRestoreOptions {
  /** By how much the first revision of an object is higher than the snapshot's. */
  readonly bumpRevision: number;
  /** Called with the present revision while it rises. */
  readonly onProgress?: ((revision: number, target: number) => void) | undefined;
  /** Called before the store may be used. */
  readonly confirm?: (() => Promise<void>) | undefined;
}

export class EtcdTransfer implements Disposable {
  readonly #servers: Servers;
  readonly #range: Range;
  readonly #prefix: string;
  readonly #clock: Clock;

  constructor({ urls, tls, prefix, clock }: EtcdTransferOptions) {
    this.#servers = new Servers({ urls, tls, clock });
    this.#prefix = prefix;
    this.#range = prefixRange(prefix);
    this.#clock = clock;
  }

  /** All objects at the latest revision. A compaction of it during the read fails the read. */
  async snapshot(): Promise<Snapshot> {
    if (await this.#isIncomplete()) throw new Error(`Cannot read ${this.#prefix}: ${INCOMPLETE}`);
    const revision = await this.revision();
    const ends = new Map<bigint, Promise<number>>();
    return { revision, parts: () => this.#parts(revision, ends) };
  }

  async revision(): Promise<Revision> {
    return revisionOf(await this.#read({ key: INCOMPLETE_KEY, countOnly: true }));
  }

  /** Rejects when an object was written after the revision. */
  async rejectIfChanged(since: Revision): Promise<void> {
    const { kvs = [] } = await this.#read({
      ...this.#bytes(this.#range),
      keysOnly: true,
      minModRevision: since + 1,
    });
    const changed = kvs[0];
    if (changed === undefined) return;
    throw new Error(
      `Cannot migrate: ${kvs.length} objects changed meanwhile, among them ${keyOf(changed)}: stop the API servers`,
    );
  }

  /** Rejects when there are objects. */
  async rejectIfUsed(): Promise<void> {
    const { count = 0 } = await this.#read({ ...this.#bytes(this.#range), countOnly: true });
    if (count === 0 || (await this.#isIncomplete())) return;
    throw new Error(`Cannot write a store to etcd: there are ${count} keys below ${this.#prefix}`);
  }

  /**
   * Writes all objects, each with a new revision, which is above that of the snapshot: etcd cannot set revisions, so
   * writes of a key raise them first. The history before is compacted, so that clients with older revisions list again.
   * API servers of this program do not start until all is done.
   */
  async restore(snapshot: Snapshot, { bumpRevision, confirm, onProgress }: EtcdRestoreOptions): Promise<RestoreResult> {
    const target = snapshot.revision + bumpRevision;
    await this.rejectIfUsed();
    const missing = target - (await this.revision());
    if (missing > RAISE_MAX) throw new Error(tooFar(missing, target));
    await this.#call(putMethod, { key: INCOMPLETE_KEY, value: Buffer.from(this.#prefix), lease: 0n });
    // Of an interrupted run.
    await this.#call(deleteRangeMethod, this.#bytes(this.#range));
    await this.#raiseRevision(target, onProgress);
    const leases = new Map<number, { id: Promise<bigint>; values: number }>();
    let items = 0;
    await this.#runAll(this.#items(snapshot), async (item) => {
      items++;
      await this.#create(item, leases);
    });
    await confirm?.();
    await this.#compact();
    await this.#call(deleteRangeMethod, { key: INCOMPLETE_KEY, rangeEnd: EMPTY });
    return { items, revision: await this.revision() };
  }

  /** Deletes the history up to the latest revision. Resolves with it. */
  async compact(): Promise<Revision> {
    return await this.#compact();
  }

  [Symbol.dispose](): void {
    this.#servers[Symbol.dispose]();
  }

  async *#parts(revision: Revision, ends: Map<bigint, Promise<number>>): AsyncIterable<readonly SnapshotItem[]> {
    let limit = PART_ITEMS;
    for (let { from } = this.#range; ; ) {
      const request = { ...this.#bytes({ from, to: this.#range.to }), revision, limit };
      const { kvs = [], more = false } = await this.#read(request);
      yield await Promise.all(kvs.map((kv) => this.#toItem(kv, ends)));
      const last = kvs.at(-1);
      if (!more || last === undefined) return;
      from = `${keyOf(last)}\0`;
      const bytes = kvs.reduce((sum, { value }) => sum + (value?.length ?? 0), 0) / kvs.length;
      limit = Math.max(1, Math.min(10_000, Math.floor(PART_BYTES / Math.max(bytes, 1))));
    }
  }

  async #toItem(kv: EtcdKeyValue, ends: Map<bigint, Promise<number>>): Promise<SnapshotItem> {
    const { createRevision = 0, modRevision = 0, value = EMPTY, lease = 0n } = kv;
    const item = { key: keyOf(kv), value, created: createRevision as Revision, modified: modRevision as Revision };
    if (lease === 0n) return item;
    let end = ends.get(lease);
    if (end === undefined) {
      end = this.#endOf(lease);
      ends.set(lease, end);
    }
    return { ...item, expiresAt: await end };
  }

  /** When a lease ends, in milliseconds since 1970; at once for one that has ended. */
  async #endOf(id: bigint): Promise<number> {
    const { ttl = 0 } = await this.#call(leaseTimeToLiveMethod, { id });
    return this.#clock.now() + Math.max(1, ttl) * 1000;
  }

  async #isIncomplete(): Promise<boolean> {
    const { kvs = [] } = await this.#read({ key: INCOMPLETE_KEY });
    return kvs.length > 0;
  }

  async *#items(snapshot: Snapshot): AsyncIterable<SnapshotItem> {
    for await (const part of snapshot.parts()) yield* part;
  }

  async #create(
    { key, value, expiresAt }: SnapshotItem,
    leases: Map<number, { id: Promise<bigint>; values: number }>,
  ): Promise<void> {
    if (!key.startsWith(this.#prefix)) {
      throw new Error(`Cannot write ${JSON.stringify(key)}: it does not start with ${this.#prefix} (--kvstore-prefix)`);
    }
    const lease = expiresAt === undefined ? 0n : await this.#leaseUntil(expiresAt, leases);
    const bytes = Buffer.from(key);
    const create = async (): Promise<boolean> => {
      const { succeeded = false } = await this.#call(txnMethod, {
        compare: [{ result: 0, target: CompareTarget.modRevision, key: bytes, modRevision: 0 }],
        success: [{ put: { key: bytes, value, lease } }],
        failure: [{ range: toRangeRequest({ key: bytes }) }],
      });
      return succeeded;
    };
    // A request that was repeated finds its own value.
    if ((await create()) || (await this.#holds(bytes, value))) return;
    throw new Error(`Cannot write ${key}: another program has written it meanwhile`);
  }

  async #holds(key: Buffer, value: Uint8Array): Promise<boolean> {
    const found = (await this.#read({ key })).kvs?.[0]?.value;
    return found !== undefined && Buffer.compare(found, value) === 0;
  }

  /** Values that expire in the same second share a lease. */
  async #leaseUntil(expiresAt: number, leases: Map<number, { id: Promise<bigint>; values: number }>): Promise<bigint> {
    const second = Math.ceil(expiresAt / 1000);
    let lease = leases.get(second);
    if (lease === undefined || lease.values >= LEASE_VALUES) {
      const ttl = Math.max(1, second - Math.floor(this.#clock.now() / 1000));
      lease = { id: this.#call(leaseGrantMethod, { ttl, id: 0n }).then(({ id = 0n }) => id), values: 0 };
      leases.set(second, lease);
    }
    lease.values++;
    return await lease.id;
  }

  async #raiseRevision(target: number, onProgress?: EtcdRestoreOptions["onProgress"]): Promise<void> {
    for (let revision = await this.revision(); revision < target; revision = await this.#compact()) {
      onProgress?.(revision, target);
      const count = Math.min(target - revision, COMPACT_WRITES);
      await this.#runAll(repeat(count), async () => {
        await this.#call(putMethod, { key: INCOMPLETE_KEY, value: Buffer.from(this.#prefix), lease: 0n });
      });
    }
  }

  async #compact(): Promise<Revision> {
    const revision = await this.revision();
    await this.#call(compactMethod, { revision }).catch((error: unknown) => {
      // Another server may have compacted it.
      if (!(error instanceof Error && error.message.includes("has been compacted"))) throw error;
    });
    return revision;
  }

  /** Several at a time. The first failure ends all. */
  async #runAll<T>(values: AsyncIterable<T>, run: (value: T) => Promise<void>): Promise<void> {
    const iterator = values[Symbol.asyncIterator]();
    let failed = false;
    // The iterator is shared: its calls of `next` queue.
    const work = async (): Promise<void> => {
      for (let next = await iterator.next(); next.done !== true && !failed; next = await iterator.next()) {
        try {
          await run(next.value);
        } catch (error) {
          failed = true;
          throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: WRITES }, work));
  }

  async #read(request: Partial<RangeRequest> & { readonly key: Uint8Array }): Promise<RangeResponse> {
    return await this.#call(rangeMethod, toRangeRequest(request));
  }

  async #call<Q extends ObjectSchema, A extends ObjectSchema>(
    method: GrpcMethod<Q, A>,
    request: Infer<Q>,
  ): Promise<Infer<A>> {
    try {
      return await this.#servers.call(method, request);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  #bytes({ from, to }: Range): { readonly key: Buffer; readonly rangeEnd: Buffer } {
    return { key: Buffer.from(from), rangeEnd: Buffer.from(to) };
  }
}

const INCOMPLETE = "a restore or migration into it was interrupted: run that again";

function tooFar(missing: number, target: number): string {
  return (
    `Cannot restore to etcd: its revision must rise by ${missing} to ${target}, and each takes a write. ` +
    "Create its data with a higher revision (etcdutl snapshot restore --bump-revision --mark-compacted), " +
    "or use a lower --bump-revision"
  );
}

function toRangeRequest(request: Partial<RangeRequest> & { readonly key: Uint8Array }): RangeRequest {
  return { rangeEnd: EMPTY, limit: 0, revision: 0, keysOnly: false, countOnly: false, minModRevision: 0, ...request };
}

function revisionOf({ header }: RangeResponse): Revision {
  return (header?.revision ?? 0) as Revision;
}

function keyOf({ key }: EtcdKeyValue): string {
  return Buffer.from(key ?? []).toString();
}

async function* repeat(count: number): AsyncIterable<undefined> {
  for (let i = 0; i < count; i++) yield undefined;
}
