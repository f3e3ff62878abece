/** A watch of a range: one stream to a server. */
import type { KeyValue, Range, Revision, WatchBatch, WatchEvent } from "../store.ts";
import { StoreError } from "../store.ts";
import { inRange } from "../store-errors.ts";
import type { BidirectionalStream, Endpoint } from "./endpoint.ts";
import { compactedError, toStoreError } from "./errors.ts";
import {
  type EtcdEvent,
  type EtcdKeyValue,
  EVENT_DELETE,
  statusMethod,
  type WatchRequest,
  type WatchResponse,
  watchMethod,
} from "./protocol.ts";

const STATUS_MS = 5_000;

export interface EtcdWatchOptions {
  readonly endpoint: Endpoint;
  readonly range: Range;
  readonly from: Revision;
  /** Ends the watch. */
  readonly signal: AbortSignal;
  /** Called with the revision of each response. */
  readonly onRevision: (revision: number) => void;
}

type Stream = BidirectionalStream<WatchRequest, WatchResponse>;

/**
 * Delivers batches in order of revision. A server that can report its progress on request watches the range; an older
 * one watches all keys, so that each revision of the store arrives as a change, and other keys are dropped here.
 */
export class EtcdWatch {
  readonly #options: EtcdWatchOptions;
  #stream: Stream | undefined;
  #reached: number;
  #reportsProgress = false;

  constructor(options: EtcdWatchOptions) {
    this.#options = options;
    this.#reached = options.from;
  }

  /** Fails with a `StoreError`. Ends when the signal aborts. */
  async *batches(): AsyncIterable<WatchBatch> {
    const { endpoint, signal } = this.#options;
    let stream: Stream | undefined;
    const cancel = (): void => stream?.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const { version = "" } = await endpoint.call(statusMethod, {}, STATUS_MS);
      this.#reportsProgress = reportsProgress(version);
      stream = await endpoint.open(watchMethod);
      // An error is also thrown by the iteration, but a cancelled stream may emit one after it.
      stream.on("error", () => {});
      this.#stream = stream;
      if (signal.aborted) return;
      stream.write({ create: this.#createRequest() });
      yield* this.#readBatches(stream);
      if (!signal.aborted) throw new StoreError("unavailable", `The server ${endpoint.address} ended the watch`);
    } catch (error) {
      if (signal.aborted) return;
      throw error instanceof StoreError ? error : toStoreError(endpoint.toError(error));
    } finally {
      signal.removeEventListener("abort", cancel);
      this.#stream = undefined;
      stream?.cancel();
    }
  }

  /** Makes the server report that it has delivered all changes up to the revision. */
  requestProgress(revision: Revision): void {
    if (this.#reportsProgress && this.#reached < revision) this.#stream?.write({ progress: {} });
  }

  /** Whether all changes up to the revision have been delivered. */
  hasReached(revision: Revision): boolean {
    return this.#reached >= revision;
  }

  #createRequest(): NonNullable<WatchRequest["create"]> {
    const { range, from } = this.#options;
    const keys = this.#reportsProgress
      ? { key: Buffer.from(range.from), rangeEnd: Buffer.from(range.to) }
      : { key: ZERO, rangeEnd: ZERO };
    // Changes at `from` itself are dropped: etcd may miss a deletion at the first revision after a compaction.
    return { ...keys, startRevision: Math.max(from, 1), progressNotify: true, prevKv: true, fragment: true };
  }

  async *#readBatches(stream: Stream): AsyncIterable<WatchBatch> {
    let parts: EtcdEvent[] = [];
    for await (const response of stream as AsyncIterable<WatchResponse>) {
      const headerRevision = response.header?.revision ?? 0;
      this.#options.onRevision(headerRevision);
      if (response.canceled === true) throw this.#toError(response);
      if (response.created === true) continue;
      const events = response.events ?? [];
      if (response.fragment === true) {
        parts.push(...events);
        continue;
      }
      const all = parts.length === 0 ? events : [...parts, ...events];
      parts = [];
      // Changes up to the revision of the header may still follow, unless the response only reports progress.
      const reached = all.length === 0 ? headerRevision : (all.at(-1)?.kv?.modRevision ?? 0);
      if (reached <= this.#options.from) continue;
      this.#reached = Math.max(reached, this.#reached);
      yield { events: this.#toEvents(all), revision: this.#reached as Revision };
    }
  }

  #toEvents(events: readonly EtcdEvent[]): WatchEvent[] {
    const result: WatchEvent[] = [];
    for (const { type, kv, prevKv } of events) {
      const key = Buffer.from(kv?.key ?? []).toString();
      if (kv === null || kv === undefined || !inRange(key, this.#options.range)) continue;
      if ((kv.modRevision ?? 0) <= this.#options.from) continue;
      const previous = prevKv === null || prevKv === undefined ? undefined : toKeyValue(prevKv);
      const modified = (kv.modRevision ?? 0) as Revision;
      if (type !== EVENT_DELETE) {
        result.push({ type: "put", item: toKeyValue(kv), previous });
      } else if (previous === undefined) {
        throw compactedError(this.#options.from, modified);
      } else {
        result.push({ type: "delete", key, revision: modified, previous });
      }
    }
    return result;
  }

  #toError({ compactRevision = 0, cancelReason = "" }: WatchResponse): StoreError {
    if (compactRevision > 0) return compactedError(this.#options.from, compactRevision);
    return new StoreError(
      "unavailable",
      `The server ${this.#options.endpoint.address} ended the watch: ${cancelReason}`,
    );
  }
}

/** Selects all keys, as `key` and `rangeEnd`. */
const ZERO = Uint8Array.of(0);

export function toKeyValue({ key, value, modRevision, createRevision }: EtcdKeyValue): KeyValue {
  return {
    key: Buffer.from(key ?? []).toString(),
    value: value ?? new Uint8Array(0),
    modified: (modRevision ?? 0) as Revision,
    created: (createRevision ?? 0) as Revision,
    isPinned: true,
  };
}

/**
 * Whether the server's progress reports follow all changes before them, as Kubernetes decides it
 * (https://github.com/etcd-io/etcd/issues/15220): from 3.4.25, 3.5.8 and 3.6 on.
 */
function reportsProgress(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  if (major !== 3) return major > 3;
  if (minor === 4) return patch >= 25;
  return minor === 5 ? patch >= 8 : minor > 5;
}
