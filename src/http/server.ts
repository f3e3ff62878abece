import { chmod, unlink } from "node:fs/promises";
import type { Server as Http1Server } from "node:http";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import { connect, type Server, type Socket } from "node:net";
import { createSecureContext, type TLSSocket } from "node:tls";
import { type Clock, systemClock, type Timer } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import type { ListenLimits, Serving } from "./exchange.ts";
import { Flight } from "./flight.ts";
import { http1Server } from "./h1.ts";
import { H2Connection, STREAM_WINDOW_BYTES } from "./h2.ts";
import type { Handler, Peer } from "./message.ts";
import { certificatesOf, plainPeer, secureOptions, type TlsOptions } from "./tls.ts";

export interface ListenOptions {
  readonly handler: Handler;
  readonly log: Logger;
  readonly clock?: Clock | undefined;
  /** All addresses when absent. */
  readonly host?: string | undefined;
  /** 0 or absent: any free port. */
  readonly port?: number | undefined;
  /** A Unix socket instead of host and port; mode 0600. A stale one is replaced. */
  readonly socketPath?: string | undefined;
  /** HTTP/2 and HTTP/1.1 by ALPN; without it plain HTTP/1.1. */
  readonly tls?: TlsOptions | undefined;
  /** Offer HTTP/2 where there is TLS; true when absent. */
  readonly http2?: boolean | undefined;
  /** Other listeners, of this process or another, may share the port. */
  readonly sharePort?: boolean | undefined;
  readonly limits?: Partial<ListenLimits> | undefined;
}

export interface Listener extends AsyncDisposable {
  /** The address bound, or the socket's path. */
  readonly address: string;
  /** 0 for a Unix socket. */
  readonly port: number;
  /**
   * Stops: no new connections or requests (GOAWAY), waits up to `graceMs` (default 0) for requests in flight, then
   * aborts what is left. Resolves when every connection is gone.
   */
  close(graceMs?: number): Promise<void>;
  /**
   * New connections use the new certificate; open ones stay. Throws, and changes nothing, when key and certificate
   * disagree.
   */
  reloadTls(tls: Pick<TlsOptions, "cert" | "key" | "ca">): void;
}

/** The timeouts and the stream limit are those of Kubernetes' API server. */
const DEFAULT_LIMITS: ListenLimits = {
  headerBytes: 64 * 1024,
  headerTimeoutMs: 32_000,
  idleTimeoutMs: 90_000,
  streamsPerConnection: 100,
};

/** A client that resets streams faster than this, in the long run, is cut off (CVE-2023-44487). */
const RESETS_BURST = 1000;
const RESETS_PER_SECOND = 100;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** What node:http2 may hold for one connection, in MB: data that a slow watcher has not taken counts. */
const SESSION_MEMORY_MB = 64;
const HEADER_COUNT_MAX = 256;

/** Rejects with the system's error when the address is taken or forbidden, or the certificate is unusable. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const clock = options.clock ?? systemClock;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const serving: Serving = { handler: options.handler, log: options.log, clock, limits, flight: new Flight() };
  const listening =
    options.tls === undefined
      ? new PlainListener(serving)
      : new SecureListener(serving, options.tls, options.http2 ?? true);
  await listening.start(options);
  return listening;
}

abstract class BaseListener implements Listener {
  address = "";
  port = 0;
  protected readonly serving: Serving;
  protected abstract readonly server: Server;
  protected abstract readonly http1: Http1Server;
  readonly #sockets = new Set<Socket>();

  constructor(serving: Serving) {
    this.serving = serving;
  }

  abstract reloadTls(tls: Pick<TlsOptions, "cert" | "key" | "ca">): void;
  /** Tells open connections that no new request will be taken. */
  protected abstract turnAway(): void;
  protected abstract stopTimers(): void;

  async start(options: ListenOptions): Promise<void> {
    this.server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => {});
      socket.setNoDelay(true);
    });
    if (options.socketPath === undefined) {
      await bind(this.server, {
        port: options.port ?? 0,
        ...(options.host === undefined ? {} : { host: options.host }),
        ...(options.sharePort === true ? { reusePort: true } : {}),
      });
    } else {
      await removeStale(options.socketPath);
      await bind(this.server, { path: options.socketPath });
      await chmod(options.socketPath, 0o600);
    }
    const bound = this.server.address();
    this.address = bound === null ? "" : typeof bound === "string" ? bound : bound.address;
    this.port = bound === null || typeof bound === "string" ? 0 : bound.port;
    this.server.on("error", (error) => this.serving.log.error("Cannot accept connections", error));
  }

  async close(graceMs = 0): Promise<void> {
    this.stopTimers();
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    const drained = this.serving.flight.drain();
    this.turnAway();
    if (graceMs > 0) await within(this.serving.clock, graceMs, drained);
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

class PlainListener extends BaseListener {
  protected readonly http1: Http1Server;
  protected readonly server: Http1Server;

  constructor(serving: Serving) {
    super(serving);
    this.http1 = http1Server(serving, (socket) => plainPeer(socket as Socket));
    this.server = this.http1;
  }

  reloadTls(): void {
    throw new Error("Cannot reload the certificate: this listener has no TLS");
  }

  protected turnAway(): void {
    this.http1.closeIdleConnections();
  }

  protected stopTimers(): void {}
}

class SecureListener extends BaseListener {
  protected readonly http1: Http1Server;
  protected readonly server: Http2SecureServer;
  #tls: TlsOptions;
  readonly #connections = new Set<H2Connection>();
  readonly #peers = new WeakMap<object, Peer>();
  #sweep: Timer | undefined;

  constructor(serving: Serving, tls: TlsOptions, http2: boolean) {
    super(serving);
    this.#tls = tls;
    this.http1 = http1Server(serving, (socket) => this.#peerOf(socket as TLSSocket));
    this.server = createSecureServer({ ...secureOptions(tls), ...sessionOptions(serving.limits, http2) });
    this.server.on("session", (session) => {
      session.on("error", (error) => serving.log.v(4)?.info("HTTP/2 connection failed", { error: error.message }));
      const connection = new H2Connection(session, this.#peerOf(session.socket as TLSSocket), serving);
      this.#connections.add(connection);
      session.on("close", () => this.#connections.delete(connection));
      this.#watchIdle();
    });
    this.server.on("unknownProtocol", (socket: TLSSocket) => this.http1.emit("connection", socket));
    this.server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      serving.log.v(3)?.info("TLS handshake failed", { peer: socket.remoteAddress, error: error.message });
      socket.destroy();
    });
    // It is handed sockets and never listens, which is what starts its check of header timeouts.
    this.http1.emit("listening");
  }

  reloadTls(tls: Pick<TlsOptions, "cert" | "key" | "ca">): void {
    const next = { ...this.#tls, ...tls };
    createSecureContext(secureOptions(next));
    this.server.setSecureContext(secureOptions(next));
    this.#tls = next;
  }

  protected turnAway(): void {
    for (const { session } of this.#connections) session.close();
    this.http1.close();
  }

  protected stopTimers(): void {
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  /** Asked once a connection: a certificate cannot change later. */
  #peerOf(socket: TLSSocket): Peer {
    let peer = this.#peers.get(socket);
    if (peer === undefined) {
      peer = { ...plainPeer(socket), encrypted: true, certificates: certificatesOf(socket) };
      this.#peers.set(socket, peer);
    }
    return peer;
  }

  /** One timer for all connections, and none while there are none. */
  #watchIdle(): void {
    if (this.#sweep !== undefined || this.serving.flight.draining) return;
    const { clock, limits } = this.serving;
    this.#sweep = clock.timer(Math.max(10, limits.idleTimeoutMs / 4), () => {
      this.#sweep = undefined;
      const now = clock.monotonic();
      for (const connection of this.#connections) {
        if (connection.idleFor(now) >= limits.idleTimeoutMs) connection.session.close();
      }
      if (this.#connections.size > 0) this.#watchIdle();
    });
  }
}

function sessionOptions(limits: ListenLimits, http2: boolean) {
  const offered = http2 ? ["h2", "http/1.1"] : ["http/1.1"];
  return {
    ALPNCallback: ({ protocols }: { protocols: string[] }) => offered.find((name) => protocols.includes(name)),
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    maxHeaderListPairs: HEADER_COUNT_MAX,
    maxSessionMemory: SESSION_MEMORY_MB,
    streamResetBurst: RESETS_BURST,
    streamResetRate: RESETS_PER_SECOND,
    settings: {
      enablePush: false,
      initialWindowSize: STREAM_WINDOW_BYTES,
      maxConcurrentStreams: limits.streamsPerConnection,
      maxHeaderListSize: limits.headerBytes,
    },
  };
}

function bind(server: Server, where: { port: number; host?: string } | { path: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(where, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Removes a socket file that nobody listens on; leaves one that is in use for `listen` to fail on. */
async function removeStale(path: string): Promise<void> {
  const refused = await new Promise<boolean>((resolve) => {
    const probe = connect({ path });
    probe.on("connect", () => {
      probe.destroy();
      resolve(false);
    });
    probe.on("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
  if (refused) await unlink(path);
}

/** Waits for `work`, at most `milliseconds`. */
function within(clock: Clock, milliseconds: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.timer(milliseconds, resolve);
    void work.then(() => {
      timer.cancel();
      resolve();
    });
  });
}
