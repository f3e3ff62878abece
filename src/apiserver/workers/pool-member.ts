/** A worker thread, from its start to its end, as the main thread sees it. */
import { MessageChannel, type MessagePort, type Worker } from "node:worker_threads";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { withTimeout } from "../../std/time/with-timeout.ts";
import type { StoreAccess } from "../../storage/worker-engine/remote-store.ts";
import type { SharedStore } from "../../storage/worker-engine/shared-store.ts";
import { StoreService } from "../../storage/worker-engine/store-service.ts";
import type { LocalTunnels } from "../tunnels/tunnel-exchange.ts";
import { type FromWorker, type ToWorker, WORKER_COMMAND, type WorkerStart, type WorkerStep } from "./messages.ts";
import type { MetricsSnapshot } from "./metric-snapshots.ts";
import { startThread } from "./start-thread.ts";

/** A worker that ends is replaced after this time. */
const REPLACE_MS = 500;
/** `/metrics` waits so long for a worker. */
const COLLECT_MS_MAX = 1000;

export interface PoolMemberDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly stores: ReadonlyMap<string, SharedStore>;
  readonly onMessage: (message: FromWorker, from: PoolMember) => void;
  readonly onEnd: (member: PoolMember) => void;
}

export class PoolMember {
  readonly index: number;
  readonly startedAt: number;
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>;
  /** The tunnels of agents that end in the thread. */
  readonly tunnels: LocalTunnels;
  replaceDelayMs = REPLACE_MS;
  replaceTimer: Timer | undefined;
  readonly #deps: PoolMemberDeps;
  readonly #worker: Worker;
  readonly #services: StoreService[] = [];
  readonly #steps = new Map<WorkerStep, PromiseWithResolvers<void>>();
  /** The metrics that were collected last, and the collection in progress. */
  #metrics: MetricsSnapshot | undefined;
  #collecting: PromiseWithResolvers<void> | undefined;
  #isOver = false;
  #isServing = false;

  constructor(start: WorkerStart, deps: PoolMemberDeps) {
    const { index } = start;
    this.index = index;
    this.#deps = deps;
    this.startedAt = deps.clock.monotonic();
    this.tunnels = {
      apply: (change) => this.send({ type: "tunnel", change }),
      replace: (nodeName) => this.send({ type: "replaceTunnel", nodeName }),
      connect: (nodeName, port) => {
        if (this.#isOver) port.close();
        else this.send({ type: "connectTunnel", nodeName, port }, [port]);
      },
    };
    const worker = startThread([WORKER_COMMAND], { workerData: start, name: `svc-worker-${index}` });
    this.#worker = worker;
    let failure: unknown;
    worker.on("message", (message: FromWorker) => {
      if (message.type === "reached") this.#reached(message.step);
      else if (message.type === "collected") this.#collected(message.metrics);
      else if (message.type === "failed") failure = new Error(message.message);
      else deps.onMessage(message, this);
    });
    worker.on("error", (error) => {
      failure = error;
      deps.log.error("A worker failed", error, { worker: index });
    });
    this.ended = new Promise((resolve) => {
      worker.on("exit", (code) => {
        this.#isOver = true;
        this.#isServing = false;
        for (const service of this.#services) service[Symbol.dispose]();
        const reason = failure ?? new Error(`Cannot start a worker: it ended with code ${code}`);
        for (const step of this.#steps.values()) step.reject(reason);
        this.#collecting?.resolve();
        resolve();
        deps.onEnd(this);
      });
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isServing(): boolean {
    return this.#isServing && !this.#isOver;
  }

  /** Rejects when the thread ends before. */
  reach(step: WorkerStep): Promise<void> {
    return this.#step(step).promise;
  }

  send(message: ToWorker, transferred: readonly MessagePort[] = []): void {
    if (!this.#isOver) this.#worker.postMessage(message, [...transferred]);
  }

  /** Sends the result of a call of the worker. */
  answer(id: number, result: Promise<unknown>): void {
    result.then(
      (value) => this.send({ type: "result", id, result: value, error: undefined }),
      (error: unknown) => this.send({ type: "result", id, result: undefined, error: String(error) }),
    );
  }

  /** Those of the last collection when the thread does not answer in time; undefined before it has answered. */
  async collectMetrics(): Promise<MetricsSnapshot | undefined> {
    if (this.#collecting === undefined) {
      this.#collecting = Promise.withResolvers<void>();
      this.send({ type: "collect" });
    }
    const { promise } = this.#collecting;
    await withTimeout(this.#deps.clock, COLLECT_MS_MAX, promise, "A worker sends no metrics").catch(() => {});
    return this.#metrics;
  }

  /** Gives the worker access to the stores. */
  open(): void {
    const stores = new Map<string, StoreAccess>();
    for (const [name, store] of this.#deps.stores) {
      const { port1, port2 } = new MessageChannel();
      this.#services.push(new StoreService(store, port1, this.#deps.clock));
      stores.set(name, { port: port2, revision: store.revision.memory, status: store.status() });
    }
    this.send(
      { type: "open", stores },
      [...stores.values()].map(({ port }) => port),
    );
  }

  async close(maxMs: number): Promise<void> {
    this.replaceTimer?.cancel();
    this.send({ type: "stop" });
    const timer = this.#deps.clock.timer(maxMs, () => {
      this.#deps.log.warn("A worker does not end; it is terminated", { worker: this.index });
      void this.terminate();
    });
    await this.ended;
    timer.cancel();
  }

  async terminate(): Promise<void> {
    this.replaceTimer?.cancel();
    await this.#worker.terminate();
    await this.ended;
  }

  #step(step: WorkerStep): PromiseWithResolvers<void> {
    let reached = this.#steps.get(step);
    if (reached === undefined) {
      reached = Promise.withResolvers<void>();
      // It may reject before it is awaited.
      reached.promise.catch(() => {});
      if (this.#isOver) reached.reject(new Error("Cannot start a worker: it ended"));
      this.#steps.set(step, reached);
    }
    return reached;
  }

  #collected(metrics: MetricsSnapshot): void {
    this.#metrics = metrics;
    this.#collecting?.resolve();
    this.#collecting = undefined;
  }

  #reached(step: WorkerStep): void {
    if (step === "serving") this.#isServing = true;
    this.#step(step).resolve();
  }
}
