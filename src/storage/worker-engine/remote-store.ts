/** The engine of a thread that uses the store of another thread of the process. */
import type { MessagePort } from "node:worker_threads";
import { Wakeup } from "../../std/async/wakeup.ts";
import {
  type KeyValue,
  type ListOptions,
  type Page,
  type Range,
  type ReadOptions,
  type Revision,
  type ScanPart,
  type Store,
  StoreError,
  type StoreStatus,
  type WatchBatch,
  type WriteOptions,
} from "../store.ts";
import { storeClosed } from "../store-errors.ts";
import { Outbox } from "./outbox.ts";
import { fromPortableError, type Reply, type Request, restoreEvent, restoreItem, STREAM_PARTS } from "./protocol.ts";
import { SharedRevision } from "./shared-revision.ts";

/** What a thread needs to use a store; `port` must be among the transferred objects. */
export interface StoreAccess {
  readonly port: MessagePort;
  /** The memory of a `SharedRevision`. */
  readonly revision: SharedArrayBuffer;
  readonly status: StoreStatus | undefined;
}

/** Further calls fail with `unavailable`. */
const CALLS_MAX = 16_384;

export function openRemoteStore(access: StoreAccess): Store {
  return new RemoteStore(access);
}

/**
 * Reads of the latest revision need no message: the owner writes it to shared memory before it acknowledges a write.
 * Calls of one turn of the event loop are one message. Values are not read a second time: the items are pinned.
 */
class RemoteStore implements Store {
  readonly #port: MessagePort;
  readonly #revision: SharedRevision;
  readonly #outbox: Outbox<Request>;
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #streams = new Map<number, Stream<ScanPart | WatchBatch>>();
  #status: StoreStatus | undefined;
  #lastId = 0;
  #closed = false;

  constructor({ port, revision, status }: StoreAccess) {
    this.#port = port;
    this.#revision = new SharedRevision(revision);
    this.#outbox = new Outbox(port);
    this.#status = status;
    port.on("message", (replies: readonly Reply[]) => {
      for (const reply of replies) this.#handle(reply);
    });
    port.on("close", () => this.#close());
  }

  current(): Revision {
    return this.#revision.read();
  }

  async get(key: string, { revision }: ReadOptions = {}): Promise<KeyValue | undefined> {
    const item = await this.#call<KeyValue | undefined>((id) => ({ op: "get", id, key, revision }));
    return item && restoreItem(item);
  }

  async list(range: Range, { revision, limit }: ListOptions = {}): Promise<Page> {
    const page = await this.#call<Page>((id) => ({ op: "list", id, range, revision, limit }));
    return { ...page, items: page.items.map(restoreItem) };
  }

  async *scan(range: Range, { revision }: ReadOptions = {}): AsyncIterable<ScanPart> {
    for await (const part of this.#read<ScanPart>((id) => ({ op: "scan", id, range, revision })))
      yield { ...part, items: part.items.map(restoreItem) };
  }

  /** Values are not kept here: the items are marked as pinned. */
  readVersion(): Uint8Array | undefined {
    return undefined;
  }

  async create(key: string, value: Uint8Array, options?: WriteOptions): Promise<Revision> {
    return await this.update(key, value, 0 as Revision, options);
  }

  async update(
    key: string,
    value: Uint8Array,
    expected: Revision,
    { ttlSeconds }: WriteOptions = {},
  ): Promise<Revision> {
    return await this.#call((id) => ({ op: "write", id, key, value, expected, ttlSeconds }));
  }

  async delete(key: string, expected: Revision): Promise<Revision> {
    return await this.#call((id) => ({ op: "delete", id, key, expected }));
  }

  async *watch(range: Range, from: Revision, signal: AbortSignal): AsyncIterable<WatchBatch> {
    for await (const { events, revision } of this.#read<WatchBatch>((id) => ({ op: "watch", id, range, from }), signal))
      yield { events: events.map(restoreEvent), revision };
  }

  async compact(before: Revision): Promise<void> {
    await this.#call((id) => ({ op: "compact", id, before }));
  }

  status(): StoreStatus | undefined {
    return this.#status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
    this.#port.close();
  }

  async #call<R>(request: (id: number) => Request): Promise<R> {
    this.#check();
    if (this.#calls.size >= CALLS_MAX) {
      throw new StoreError("unavailable", `Cannot use the store: ${CALLS_MAX} calls are in progress`);
    }
    const call = Promise.withResolvers<unknown>();
    const id = ++this.#lastId;
    this.#calls.set(id, call);
    this.#outbox.add(request(id));
    return (await call.promise) as R;
  }

  async *#read<P extends ScanPart | WatchBatch>(request: (id: number) => Request, signal = NEVER): AsyncIterable<P> {
    if (signal.aborted) return;
    this.#check();
    const id = ++this.#lastId;
    const stream = new Stream<P>();
    this.#streams.set(id, stream as Stream<ScanPart | WatchBatch>);
    this.#outbox.add(request(id));
    let processed = 0;
    try {
      for (let part = await stream.next(signal); part !== undefined; part = await stream.next(signal)) {
        yield part;
        if (++processed < STREAM_PARTS / 2) continue;
        this.#outbox.add({ op: "processed", id, parts: processed });
        processed = 0;
      }
    } finally {
      this.#streams.delete(id);
      if (!stream.isOver && !this.#closed) this.#outbox.add({ op: "cancel", id });
    }
  }

  #handle(reply: Reply): void {
    if ("status" in reply) this.#status = reply.status;
    else if ("part" in reply) this.#streams.get(reply.id)?.add(reply.part);
    else if ("end" in reply) this.#streams.get(reply.id)?.end(undefined);
    else {
      const call = this.#calls.get(reply.id);
      this.#calls.delete(reply.id);
      if ("result" in reply) call?.resolve(reply.result);
      else if (call !== undefined) call.reject(fromPortableError(reply.error));
      else this.#streams.get(reply.id)?.end(fromPortableError(reply.error));
    }
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#outbox.close();
    for (const call of this.#calls.values()) call.reject(storeClosed());
    this.#calls.clear();
    for (const stream of this.#streams.values()) stream.end(storeClosed());
  }

  #check(): void {
    if (this.#closed) throw storeClosed();
  }
}

const NEVER = new AbortController().signal;

/** Parts that have arrived and are not processed yet: at most `STREAM_PARTS`. */
class Stream<P> {
  readonly #arrived = new Wakeup();
  #parts: P[] = [];
  #end: { readonly error: Error | undefined } | undefined;

  /** Whether the owner has ended the stream. */
  get isOver(): boolean {
    return this.#end !== undefined;
  }

  add(part: P): void {
    this.#parts.push(part);
    this.#arrived.notify();
  }

  end(error: Error | undefined): void {
    this.#end ??= { error };
    this.#arrived.notify();
  }

  /** Undefined at the end, and when the signal aborts. */
  async next(signal: AbortSignal): Promise<P | undefined> {
    while (!signal.aborted) {
      const part = this.#parts.shift();
      if (part !== undefined) return part;
      if (this.#end?.error !== undefined) throw this.#end.error;
      if (this.#end !== undefined) return undefined;
      await this.#arrived.wait(signal);
    }
    return undefined;
  }
}
