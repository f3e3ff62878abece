/** Serves a store to a thread that uses it as its own: `remote-store.ts` is the other end of the port. */
import type { MessagePort } from "node:worker_threads";
import { Wakeup } from "../../std/async/wakeup.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Page, ScanPart, WatchBatch } from "../store.ts";
import { Outbox } from "./outbox.ts";
import {
  type Reply,
  type Request,
  STREAM_PARTS,
  toPortableError,
  toPortableEvent,
  toPortableItem,
} from "./protocol.ts";
import type { SharedStore } from "./shared-store.ts";

/** The status is sent with other replies, at most so often. */
const STATUS_MS = 1000;

interface OpenStream {
  readonly stop: AbortController;
  readonly processed: Wakeup;
  /** Parts that the client has not processed yet. */
  ahead: number;
}

/** Ends when the other end of the port closes, or when disposed. */
export class StoreService implements Disposable {
  readonly #store: SharedStore;
  readonly #port: MessagePort;
  readonly #clock: Clock;
  readonly #outbox: Outbox<Reply>;
  readonly #streams = new Map<number, OpenStream>();
  #statusAt: number;

  constructor(store: SharedStore, port: MessagePort, clock: Clock) {
    this.#store = store;
    this.#port = port;
    this.#clock = clock;
    this.#outbox = new Outbox(port);
    this.#statusAt = clock.monotonic();
    port.on("message", (requests: readonly Request[]) => {
      for (const request of requests) this.#handle(request);
    });
    port.on("close", () => this.#stop());
  }

  [Symbol.dispose](): void {
    this.#stop();
    this.#port.close();
  }

  #stop(): void {
    this.#outbox.close();
    for (const { stop, processed } of this.#streams.values()) {
      stop.abort();
      processed.notify();
    }
    this.#streams.clear();
  }

  #handle(request: Request): void {
    const { id } = request;
    switch (request.op) {
      case "processed": {
        const stream = this.#streams.get(id);
        if (stream === undefined) return;
        stream.ahead -= request.parts;
        stream.processed.notify();
        return;
      }
      case "cancel":
        this.#streams.get(id)?.stop.abort();
        return;
      case "scan":
        void this.#stream(id, (_signal) => this.#store.scan(request.range, request), toPortablePart);
        return;
      case "watch":
        void this.#stream(id, (signal) => this.#store.watch(request.range, request.from, signal), toPortableBatch);
        return;
      default:
        void this.#call(request).then(
          (result) => this.#send({ id, result }),
          (error: unknown) => this.#send({ id, error: toPortableError(error) }),
        );
    }
  }

  async #call(request: Exclude<Request, { readonly op: "processed" | "cancel" | "scan" | "watch" }>): Promise<unknown> {
    const store = this.#store;
    switch (request.op) {
      case "get": {
        const item = await store.get(request.key, request);
        return item && toPortableItem(item);
      }
      case "list":
        return toPortablePage(await store.list(request.range, request));
      case "write": {
        const { key, value, expected } = request;
        return expected === 0
          ? await store.create(key, value, request)
          : await store.update(key, value, expected, request);
      }
      case "delete":
        return await store.delete(request.key, request.expected);
      case "compact":
        return await store.compact(request.before);
      default:
        return request satisfies never;
    }
  }

  /** A client that is slow to process the parts stops the stream: its queue is bounded. */
  async #stream<P extends ScanPart | WatchBatch>(
    id: number,
    read: (signal: AbortSignal) => AsyncIterable<P>,
    toPortable: (part: P) => P,
  ): Promise<void> {
    const stream: OpenStream = { stop: new AbortController(), processed: new Wakeup(), ahead: 0 };
    const { signal } = stream.stop;
    this.#streams.set(id, stream);
    try {
      for await (const part of read(signal)) {
        if (signal.aborted) break;
        this.#send({ id, part: toPortable(part) });
        stream.ahead++;
        while (stream.ahead >= STREAM_PARTS && !signal.aborted) await stream.processed.wait(signal);
      }
      if (!signal.aborted) this.#send({ id, end: true });
    } catch (error) {
      if (!signal.aborted) this.#send({ id, error: toPortableError(error) });
    } finally {
      this.#streams.delete(id);
    }
  }

  #send(reply: Reply): void {
    this.#outbox.add(reply);
    const now = this.#clock.monotonic();
    if (now - this.#statusAt < STATUS_MS) return;
    this.#statusAt = now;
    const status = this.#store.status();
    if (status !== undefined) this.#outbox.add({ status });
  }
}

function toPortablePage(page: Page): Page {
  return { ...page, items: page.items.map(toPortableItem) };
}

function toPortablePart(part: ScanPart): ScanPart {
  return { ...part, items: part.items.map(toPortableItem) };
}

function toPortableBatch({ events, revision }: WatchBatch): WatchBatch {
  return { events: events.map(toPortableEvent), revision };
}
