/** What all listeners share: bind to a port or a socket, track connections, stop gracefully. */
import { chmod, unlink } from "node:fs/promises";
import type { Server as Http1Server } from "node:http";
import { connect, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../std/time/clock.ts";
import type { Peer } from "../message.ts";
import { plainPeer, type TlsCertificates } from "../tls/options.ts";
import type { ServerContext } from "./exchange.ts";
import { createHttp1Server } from "./http1.ts";

export interface Listener extends AsyncDisposable {
  /** The address bound, or the socket's path. */
  readonly address: string;
  /** 0 for a Unix socket. */
  readonly port: number;
  /** Serves a connection of this process, which the listener owns: HTTP/1.1 without TLS. */
  accept(socket: Duplex, peer: Peer): void;
  /**
   * Stops: no new connections or requests (GOAWAY), waits up to `graceMs` (default 0) for requests in flight, then
   * aborts the rest. Resolves when every connection is closed.
   */
  close(graceMs?: number): Promise<void>;
  /**
   * New connections use the new certificates; open ones stay. Throws, and changes nothing, when a key does not match
   * its certificate. The names of named pairs cannot change.
   */
  reloadTls(tls: TlsCertificates): void;
}

export interface BindOptions {
  /** All addresses when absent. */
  readonly host?: string | undefined;
  /** 0 or absent: any free port. */
  readonly port?: number | undefined;
  /** A Unix socket instead of host and port; mode 0600. A stale one is replaced. */
  readonly socketPath?: string | undefined;
  /** Other listeners, of this process or another, may share the port. */
  readonly sharePort?: boolean | undefined;
}

/** How long a stop waits for connections that have switched protocols. */
const SWITCHED_MS_MAX = 500;

/** Interval of TCP keep-alive probes; Kubernetes' figure. */
const KEEP_ALIVE_MS = 180_000;

export abstract class BaseListener implements Listener {
  address = "";
  port = 0;
  protected readonly context: ServerContext;
  protected abstract readonly server: Server;
  protected abstract readonly http1: Http1Server;
  /** Clients, by socket. */
  protected readonly peers = new WeakMap<object, Peer>();
  readonly #sockets = new Set<Duplex>();

  constructor(context: ServerContext) {
    this.context = context;
  }

  abstract reloadTls(tls: TlsCertificates): void;
  /** Announces to open connections that no new request is accepted. */
  protected abstract rejectNewRequests(): void;
  protected abstract stopTimers(): void;

  async start(options: BindOptions): Promise<void> {
    this.server.on("connection", (socket: Socket) => {
      if (this.#sockets.has(socket)) return;
      this.#own(socket);
      socket.setNoDelay(true);
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
    });
    if (options.socketPath === undefined) {
      await bind(this.server, {
        port: options.port ?? 0,
        ...(options.host === undefined ? {} : { host: options.host }),
        ...(options.sharePort === true ? { reusePort: true } : {}),
      });
    } else {
      await removeStaleSocket(options.socketPath);
      await bind(this.server, { path: options.socketPath });
      await chmod(options.socketPath, 0o600);
    }
    const bound = this.server.address();
    this.address = bound === null ? "" : typeof bound === "string" ? bound : bound.address;
    this.port = bound === null || typeof bound === "string" ? 0 : bound.port;
    this.server.on("error", (error) => this.context.log.error("Cannot accept connections", error));
  }

  accept(socket: Duplex, peer: Peer): void {
    this.#own(socket);
    this.peers.set(socket, peer);
    if (this.context.inFlight.draining) socket.destroy();
    else this.http1.emit("connection", socket);
  }

  #own(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => {});
  }

  async close(graceMs = 0): Promise<void> {
    this.stopTimers();
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    const drained = this.context.inFlight.drain();
    this.rejectNewRequests();
    const { clock, inFlight } = this.context;
    if (graceMs > 0) {
      await waitAtMost(clock, graceMs, drained);
      // Watches over WebSocket send a close frame; streams into containers have no end.
      await waitAtMost(clock, Math.min(graceMs, SWITCHED_MS_MAX), inFlight.switchedEnd());
    }
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** HTTP/1.1 without TLS. */
export class PlainListener extends BaseListener {
  protected readonly http1: Http1Server;
  protected readonly server: Http1Server;

  constructor(context: ServerContext) {
    super(context);
    this.http1 = createHttp1Server(context, (socket) => this.peers.get(socket) ?? plainPeer(socket as Socket));
    this.server = this.http1;
  }

  reloadTls(): void {
    throw new Error("Cannot reload the certificate: this listener has no TLS");
  }

  protected rejectNewRequests(): void {
    this.http1.closeIdleConnections();
  }

  protected stopTimers(): void {}
}

function bind(server: Server, options: { port: number; host?: string } | { path: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Removes a socket file that no process listens on; `listen` fails on one that is in use. */
async function removeStaleSocket(path: string): Promise<void> {
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
function waitAtMost(clock: Clock, milliseconds: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.timer(milliseconds, resolve);
    void work.then(() => {
      timer.cancel();
      resolve();
    });
  });
}
