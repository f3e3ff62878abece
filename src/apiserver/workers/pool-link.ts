/** The worker's end of the messages between it and the main thread. */
import type { MessagePort } from "node:worker_threads";
import type { AuditLines } from "../../audit/log-sink.ts";
import type { Store } from "../../storage/store.ts";
import { openRemoteStore, type StoreAccess } from "../../storage/worker-engine/remote-store.ts";
import { Calls } from "./calls.ts";
import type { FromWorker, ToWorker, WorkerStep } from "./messages.ts";
import type { MetricsSnapshot } from "./metric-snapshots.ts";
import { isEmbeddedStore, type ThreadLink } from "./thread-link.ts";

export class PoolLink implements ThreadLink {
  readonly isMain = false;
  readonly #port: MessagePort;
  readonly #calls = new Calls();
  readonly #opened = Promise.withResolvers<void>();
  readonly #listen = Promise.withResolvers<number>();
  readonly #serve = Promise.withResolvers<void>();
  readonly #stopped = Promise.withResolvers<void>();
  #stores: ReadonlyMap<string, StoreAccess> = new Map();
  #metrics: { readonly take: () => MetricsSnapshot; readonly reset: () => void } | undefined;
  #isStopped = false;

  constructor(port: MessagePort) {
    this.#port = port;
  }

  /** Resolves when the stores are accessible. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Resolves with the port to listen on. */
  get listenPort(): Promise<number> {
    return this.#listen.promise;
  }

  /** Resolves when the main thread is ready. */
  get mainIsReady(): Promise<void> {
    return this.#serve.promise;
  }

  /** Resolves when the server is to stop. */
  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  reached(step: WorkerStep): void {
    this.send({ type: "reached", step });
  }

  send(message: FromWorker): void {
    this.#port.postMessage(message);
  }

  handle(message: ToWorker): void {
    switch (message.type) {
      case "open":
        this.#stores = message.stores;
        this.#opened.resolve();
        return;
      case "listen":
        this.#listen.resolve(message.port);
        return;
      case "serve":
        this.#serve.resolve();
        return;
      case "stop":
        this.#isStopped = true;
        this.#stopped.resolve();
        return;
      case "resetMetrics":
        this.#metrics?.reset();
        return;
      case "collect":
        this.send({ type: "collected", id: message.id, metrics: this.#metrics?.take() ?? { all: [], slis: [] } });
        return;
      case "result":
        if (message.error === undefined) this.#calls.resolve(message.id, message.result);
        else this.#calls.reject(message.id, message.error);
        return;
      default:
    }
  }

  async openStore(urls: readonly string[], open: () => Promise<Store>): Promise<Store> {
    if (!isEmbeddedStore(urls)) return await open();
    const access = this.#stores.get(urls.join(","));
    if (access === undefined)
      throw new Error(`Cannot use the store ${urls.join(",")}: the main thread has not opened it`);
    return openRemoteStore(access);
  }

  async openAuditLog(): Promise<AuditLines> {
    return {
      append: (text) => this.#calls.call<void>((id) => this.send({ type: "appendAudit", id, text })),
      async [Symbol.asyncDispose]() {},
    };
  }

  serveMetrics(take: () => MetricsSnapshot, reset: () => void): void {
    this.#metrics = { take, reset };
  }

  async collectMetrics(): Promise<readonly MetricsSnapshot[]> {
    return await this.#calls.call((id) => this.send({ type: "collectOthers", id }));
  }

  resetMetrics(): void {
    this.send({ type: "resetMetrics" });
  }
}
