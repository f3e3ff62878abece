/**
 * The worker threads of an API server. Each runs an API server of its own over the stores of the main thread and
 * listens on the same port: the kernel spreads connections over the threads (SO_REUSEPORT). The main thread serves
 * connections too, and owns what exists once: the stores, the objects of the control plane, controllers, the audit log.
 */
import { createServer } from "node:net";
import { join } from "node:path";
import type { AuditLines } from "../../audit/log-sink.ts";
import { explainAddressInUse } from "../../http/server/address-in-use.ts";
import type { Logger, LogOptions } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { withTimeout } from "../../std/time/with-timeout.ts";
import type { Store } from "../../storage/store.ts";
import { SharedStore } from "../../storage/worker-engine/shared-store.ts";
import type { ApiServerConfig } from "../config/config.ts";
import type { LocalTunnels, OtherTunnels } from "../tunnels/tunnel-exchange.ts";
import type { FromWorker, WorkerStart, WorkerStep } from "./messages.ts";
import type { MetricsSnapshot } from "./metric-snapshots.ts";
import { PoolMember } from "./pool-member.ts";
import { isEmbeddedStore, type ThreadLink } from "./thread-link.ts";
import { TunnelDirectory } from "./tunnel-directory.ts";

export interface WorkerPoolDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** The options of the workers' logs. */
  readonly logOptions?: Partial<LogOptions> | undefined;
  readonly setVerbosity?: ((level: number) => void) | undefined;
  readonly hostName?: string | undefined;
}

/** A worker that takes longer to start does not start. */
const START_MS = 60_000;
/** After the drain, how long a worker may take to end. */
const END_MS = 5_000;
/** The time after which a worker that ended is replaced doubles with each one that ends within a minute. */
const REPLACE_MS_MAX = 30_000;
const STABLE_MS = 60_000;

export class WorkerPool implements ThreadLink {
  readonly isMain = true;
  readonly #isPortExclusive: boolean;
  /** The configuration of each thread: the limits of requests in flight are divided. */
  readonly config: ApiServerConfig;
  readonly #deps: WorkerPoolDeps;
  readonly #stores = new Map<string, SharedStore>();
  readonly #members: PoolMember[];
  readonly #tunnels = new TunnelDirectory(() => this.#allTunnels());
  #ownTunnels: LocalTunnels | undefined;
  #auditLog: AuditLines | undefined;
  #metrics: { readonly take: () => MetricsSnapshot; readonly reset: () => void } | undefined;
  #port: number | undefined;
  #serves = false;
  #closing = false;

  /** The threads load their code while the main thread starts. Throws one sentence for an operator. */
  constructor(config: ApiServerConfig, deps: WorkerPoolDeps) {
    this.config = dividedConfig(config);
    this.#deps = deps;
    this.#isPortExclusive = !config.serving.sharePort;
    this.#members = Array.from({ length: config.workers - 1 }, (_, index) => this.#start(index + 1));
  }

  async openStore(urls: readonly string[], open: () => Promise<Store>): Promise<Store> {
    if (!isEmbeddedStore(urls)) return await open();
    const store = new SharedStore(await open());
    this.#stores.set(urls.join(","), store);
    return store;
  }

  async openAuditLog(open: () => Promise<AuditLines>): Promise<AuditLines> {
    this.#auditLog = await open();
    return this.#auditLog;
  }

  serveMetrics(take: () => MetricsSnapshot, reset: () => void): void {
    this.#metrics = { take, reset };
  }

  async collectMetrics(): Promise<readonly MetricsSnapshot[]> {
    return await this.#collect(undefined);
  }

  resetMetrics(): void {
    for (const member of this.#members) member.send({ type: "resetMetrics" });
  }

  shareTunnels(local: LocalTunnels): OtherTunnels {
    this.#ownTunnels = local;
    return {
      publish: (change) => this.#tunnels.publish(local, change),
      connect: (nodeName, port) => this.#tunnels.connect(nodeName, port),
    };
  }

  #allTunnels(): readonly LocalTunnels[] {
    const own = this.#ownTunnels === undefined ? [] : [this.#ownTunnels];
    return [...own, ...this.#members.map(({ tunnels }) => tunnels)];
  }

  setVerbosity(level: number): void {
    for (const member of this.#members) member.send({ type: "verbosity", level });
  }

  /** Rejects when another program listens on the port: the kernel would divide connections between the two. */
  async prepare(): Promise<void> {
    const { bindAddress, securePort } = this.config;
    if (this.#isPortExclusive && securePort !== 0)
      await explainAddressInUse("--secure-port", bindOnce(bindAddress, securePort));
    for (const member of this.#members) member.open();
    await this.#reach("prepared");
  }

  async listen(port: number): Promise<void> {
    this.#port = port;
    for (const member of this.#members) member.send({ type: "listen", port });
    await this.#reach("listening");
  }

  /** Called when the main thread is ready. Resolves when the workers are. */
  async serve(): Promise<void> {
    this.#serves = true;
    for (const member of this.#members) member.send({ type: "serve" });
    await this.#reach("serving");
    for (const member of this.#members) member.send({ type: "ready" });
  }

  /** Resolves when the requests of all workers have ended, or the workers themselves. */
  async drained(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.reach("drained").catch(() => {})));
    for (const member of this.#members) member.send({ type: "drained" });
  }

  /** Drains and ends all workers, as SIGTERM does. */
  async close(): Promise<void> {
    this.#closing = true;
    const { shutdown, limits } = this.config;
    const drainMs = Math.max(limits.requestTimeoutMs, shutdown.watchGraceMs);
    const maxMs = shutdown.delayMs + drainMs + END_MS;
    await Promise.all(this.#members.map((member) => member.close(maxMs)));
  }

  /** Ends all workers at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing = true;
    await Promise.all(this.#members.map((member) => member.terminate()));
  }

  async #reach(step: WorkerStep): Promise<void> {
    const { clock } = this.#deps;
    const all = Promise.all(this.#members.map((member) => member.reach(step)));
    await withTimeout(clock, START_MS, all, `Cannot start the workers: they do not reach the step "${step}"`);
  }

  #start(index: number): PoolMember {
    const { logOptions = {}, hostName } = this.#deps;
    const start: WorkerStart = { index, config: this.config, log: logOptions, hostName };
    return new PoolMember(start, {
      ...this.#deps,
      stores: this.#stores,
      onMessage: (message, from) => this.#handle(message, from),
      onEnd: (ended) => {
        this.#tunnels.remove(ended.tunnels, new Date(this.#deps.clock.now()).toISOString());
        this.#replace(ended);
      },
    });
  }

  /** A worker that ended by itself; while the server starts, that fails the start. */
  #replace(ended: PoolMember): void {
    if (this.#closing || !this.#serves) return;
    const { clock, log } = this.#deps;
    const delayMs = ended.replaceDelayMs;
    log.error("A worker ended; starting another one", undefined, { worker: ended.index, milliseconds: delayMs });
    ended.replaceTimer = clock.timer(delayMs, () => {
      const member = this.#start(ended.index);
      member.replaceDelayMs =
        clock.monotonic() - ended.startedAt < STABLE_MS ? Math.min(2 * delayMs, REPLACE_MS_MAX) : member.replaceDelayMs;
      this.#members[this.#members.indexOf(ended)] = member;
      void this.#bringUp(member);
    });
  }

  /** A worker that hangs is terminated, and so replaced as one that ended. */
  async #bringUp(member: PoolMember): Promise<void> {
    const { clock, log } = this.#deps;
    const start = async (): Promise<void> => {
      member.open();
      await member.reach("prepared");
      member.send({ type: "listen", port: this.#port ?? 0 });
      member.send({ type: "serve" });
      await member.reach("serving");
      member.send({ type: "ready" });
    };
    try {
      await withTimeout(clock, START_MS, start(), `Cannot start a worker: it does not serve after ${START_MS} ms`);
      log.info("Another worker serves", { worker: member.index });
    } catch (error) {
      if (this.#closing) return;
      log.error("Cannot start a worker", error, { worker: member.index });
      if (!member.isOver) await member.terminate();
    }
  }

  #handle(message: FromWorker, from: PoolMember): void {
    switch (message.type) {
      case "verbosity":
        this.#deps.setVerbosity?.(message.level);
        for (const member of this.#members.filter((each) => each !== from))
          member.send({ type: "verbosity", level: message.level });
        return;
      case "resetMetrics":
        this.#metrics?.reset();
        for (const member of this.#members.filter((each) => each !== from)) member.send({ type: "resetMetrics" });
        return;
      case "tunnel":
        this.#tunnels.publish(from.tunnels, message.change);
        return;
      case "connectTunnel":
        this.#tunnels.connect(message.nodeName, message.port);
        return;
      case "listTunnels":
        this.#tunnels.sendAll(from.tunnels);
        return;
      case "collectOthers":
        from.answer(message.id, this.#collect(from));
        return;
      case "appendAudit":
        from.answer(message.id, this.#auditLog?.append(message.text) ?? Promise.resolve());
        return;
      default:
    }
  }

  /** The metrics of all threads but one; undefined: but the main thread. */
  async #collect(except: PoolMember | undefined): Promise<readonly MetricsSnapshot[]> {
    const own = except === undefined || this.#metrics === undefined ? [] : [this.#metrics.take()];
    const others = this.#members.filter((member) => member !== except && member.isServing);
    const snapshots = await Promise.all(others.map((member) => member.collectMetrics()));
    return [...own, ...snapshots.filter((snapshot) => snapshot !== undefined)];
  }
}

/** Each thread admits its part of the requests. */
function dividedConfig(config: ApiServerConfig): ApiServerConfig {
  const { limits, serving, authentication, workers } = config;
  const part = (limit: number): number => Math.ceil(limit / workers);
  const { inFlight } = limits;
  const { serviceAccounts } = authentication;
  return {
    ...config,
    serving: { ...serving, sharePort: true },
    // All threads have the same key, also with a store in memory.
    authentication: {
      ...authentication,
      serviceAccounts: {
        ...serviceAccounts,
        generatedKeyFile: serviceAccounts.generatedKeyFile ?? join(serving.certDir, "service-account.key"),
      },
    },
    limits: {
      ...limits,
      inFlight: { ...inFlight, readOnly: part(inFlight.readOnly), mutating: part(inFlight.mutating) },
    },
  };
}

function bindOnce(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ port, ...(host === "" ? {} : { host }) }, () => server.close(() => resolve()));
  });
}
