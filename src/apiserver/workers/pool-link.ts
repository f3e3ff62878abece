/** The worker's end of the messages between it and the main thread. */
import type { MessagePort } from "node:worker_threads";
import type { AuditLines } from "../../audit/log-sink.ts";
import type { Clock } from "../../std/time/clock.ts";
import { withTimeout } from "../../std/time/with-timeout.ts";
import type { Store } from "../../storage/store.ts";
import { openRemoteStore, type StoreAccess } from "../../storage/worker-engine/remote-store.ts";
import type { LocalTunnels, OtherTunnels } from "../tunnels/tunnel-exchange.ts";
import type { FromWorker, ToWorker, WorkerStep } from "./messages.ts";
import type { MetricsSnapshot } from "./metric-snapshots.ts";
import { PendingCalls } from "./pending-calls.ts";
import { isEmbeddedStore, type ThreadLink } from "./thread-link.ts";

/** Longer than the main thread waits for the other workers. */
const COLLECT_MS_MAX = 2000;

export class PoolLink implements ThreadLink {
  readonly isMain = false;
  readonly #port: MessagePort;
  readonly #clock: Clock;
  readonly #calls = new PendingCalls();
  readonly #opened = Promise.withResolvers<void>();
  readonly #listen = Promise.withResolvers<number>();
  readonly #serve = Promise.withResolvers<void>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #stopped = Promise.withResolvers<void>();
  readonly #drained = Promise.withResolvers<void>();
  #stores: ReadonlyMap<string, StoreAccess> = new Map();
  #metrics: { readonly take: () => MetricsSnapshot; readonly reset: () => void } | undefined;
  /** The last metrics of the other threads. */
  #otherMetrics: readonly MetricsSnapshot[] = [];
  #tunnels: LocalTunnels | undefined;
  #isStopped = false;

  constructor(port: MessagePort, clock: Clock) {
    this.#port = port;
    this.#clock = clock;
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

  /** Resolves when all threads serve. */
  get allServe(): Promise<void> {
    return this.#ready.promise;
  }

  /** Resolves when the requests of all threads have ended. */
  async drained(): Promise<void> {
    this.reportStep("drained");
    await this.#drained.promise;
  }

  /** Resolves when the server is to stop. */
  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  reportStep(step: WorkerStep): void {
    this.send({ type: "reached", step });
  }

  send(message: FromWorker, transferred: readonly MessagePort[] = []): void {
    this.#port.postMessage(message, [...transferred]);
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
      case "ready":
        this.#ready.resolve();
        return;
      case "stop":
        this.#isStopped = true;
        this.#stopped.resolve();
        return;
      case "drained":
        this.#drained.resolve();
        return;
      case "resetMetrics":
        this.#metrics?.reset();
        return;
      case "collect":
        this.send({ type: "collected", metrics: this.#metrics?.take() ?? { all: [], slis: [] } });
        return;
      case "tunnel":
        this.#tunnels?.apply(message.change);
        return;
      case "replaceTunnel":
        this.#tunnels?.replace(message.nodeName);
        return;
      case "connectTunnel":
        if (this.#tunnels === undefined) message.port.close();
        else this.#tunnels.connect(message.nodeName, message.port);
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

  /** The last ones when the main thread does not answer in time. */
  async collectMetrics(): Promise<readonly MetricsSnapshot[]> {
    const call = this.#calls.call<readonly MetricsSnapshot[]>((id) => this.send({ type: "collectOthers", id }));
    const failure = "Cannot collect the metrics of the other threads";
    this.#otherMetrics = await withTimeout(this.#clock, COLLECT_MS_MAX, call, failure).catch(() => this.#otherMetrics);
    return this.#otherMetrics;
  }

  resetMetrics(): void {
    this.send({ type: "resetMetrics" });
  }

  shareTunnels(local: LocalTunnels): OtherTunnels {
    this.#tunnels = local;
    this.send({ type: "listTunnels" });
    return {
      publish: (change) => this.send({ type: "tunnel", change }),
      connect: (nodeName, port) => this.send({ type: "connectTunnel", nodeName, port }, [port]),
    };
  }
}
