/** HTTP/2 and HTTP/1.1 over TLS, chosen by ALPN. */
import type { Server as Http1Server } from "node:http";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import { createServer, type Server, type Socket } from "node:net";
import { createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import type { Timer } from "../../std/time/clock.ts";
import type { Peer } from "../message.ts";
import {
  type NamedTlsPair,
  securePeer,
  type TlsCertificates,
  type TlsOptions,
  toSecureOptions,
} from "../tls/options.ts";
import { CertificateSelector, normalizeAddress } from "../tls/server-names.ts";
import type { ListenLimits, ServerContext } from "./exchange.ts";
import { createHttp1Server } from "./http1.ts";
import { Http2Connection, STREAM_WINDOW_BYTES } from "./http2.ts";
import { BaseListener } from "./listener.ts";

/** The connection of a client that resets streams faster than this is closed (CVE-2023-44487). */
const RESETS_BURST = 1000;
const RESETS_PER_SECOND = 100;
/** Memory of node:http2 for one connection, in MB, including data that a slow watcher has not read. */
const SESSION_MEMORY_MB = 64;
const HEADER_COUNT_MAX = 256;

/** As Go's `net/http` responds to a request without TLS. */
const PLAIN_HTTP_RESPONSE = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

type SniCallback = (name: string, done: (error: Error | null, context?: SecureContext) => void) => void;

interface NamedContext extends NamedTlsPair {
  readonly context: SecureContext;
}

/** What `reloadTls` replaces. */
interface ServedCertificates {
  readonly tls: TlsOptions;
  readonly selector: CertificateSelector<NamedContext>;
}

export class SecureListener extends BaseListener {
  protected readonly http1: Http1Server;
  protected readonly server: Server;
  #served: ServedCertificates;
  /** node:http2 has one certificate per server for clients without SNI: one server per address with a certificate. */
  readonly #serversByAddress = new Map<string, Http2SecureServer>();
  readonly #default: Http2SecureServer;
  readonly #connections = new Set<Http2Connection>();
  /** By the client's address, for responses to clients that do not speak TLS. */
  readonly #sockets = new Map<string, Socket>();
  #idleTimer: Timer | undefined;

  constructor(context: ServerContext, tls: TlsOptions, http2: boolean) {
    super(context);
    this.#served = createServedCertificates(tls);
    this.http1 = createHttp1Server(context, (socket) => this.#peerOf(socket as TLSSocket));
    this.#default = this.#secureServer(http2, undefined);
    for (const address of this.#served.selector.addresses()) {
      this.#serversByAddress.set(normalizeAddress(address), this.#secureServer(http2, address));
    }
    this.server = createServer((socket) => {
      const key = toKey(socket);
      this.#sockets.set(key, socket);
      socket.once("close", () => this.#sockets.delete(key));
      this.#acceptWithFirstBytes(socket);
    });
    // It gets sockets and never listens; this event starts its check of header timeouts.
    this.http1.emit("listening");
  }

  reloadTls(tls: TlsCertificates): void {
    const next = createServedCertificates({ ...this.#served.tls, ...tls });
    this.#default.setSecureContext(toSecureOptions(next.tls));
    for (const [address, server] of this.#serversByAddress) {
      server.setSecureContext(toSecureOptions(next.tls, next.selector.forAddress(address)));
    }
    this.#served = next;
  }

  protected rejectNewRequests(): void {
    for (const { session } of this.#connections) session.close();
    this.http1.close();
  }

  protected stopTimers(): void {
    this.#idleTimer?.cancel();
    this.#idleTimer = undefined;
  }

  /**
   * Starts TLS with the first bytes of the client. node:tls allocates 64 KiB for encrypted input when it reads from the
   * socket first, and keeps them as long as the connection; for bytes that were read before, their size.
   */
  #acceptWithFirstBytes(socket: Socket): void {
    const destroy = (): void => void socket.destroy();
    socket.setTimeout(this.context.limits.handshakeTimeoutMs, destroy);
    socket.once("data", (bytes) => {
      socket.setTimeout(0, destroy);
      socket.pause();
      socket.unshift(bytes);
      this.#serverFor(socket).emit("connection", socket);
    });
  }

  #serverFor(socket: Socket): Http2SecureServer {
    if (this.#serversByAddress.size === 0) return this.#default;
    return this.#serversByAddress.get(normalizeAddress(socket.localAddress ?? "")) ?? this.#default;
  }

  readonly #sniCallback: SniCallback = (name, done) => done(null, this.#served.selector.forName(name).context);

  /** For connections to `address`; undefined: to any other. */
  #secureServer(http2: boolean, address: string | undefined): Http2SecureServer {
    const { context } = this;
    const { tls, selector: choice } = this.#served;
    const pair = address === undefined ? tls : choice.forAddress(address);
    const server = createSecureServer({
      ...toSecureOptions(tls, pair),
      ...sessionOptions(context.limits, http2),
      ...(tls.named === undefined || tls.named.length === 0 ? {} : { SNICallback: this.#sniCallback }),
    });
    server.on("session", (session) => {
      session.on("error", (error) => context.log.v(4)?.info("HTTP/2 connection failed", { error: error.message }));
      const connection = new Http2Connection(session, this.#peerOf(session.socket as TLSSocket), context);
      this.#connections.add(connection);
      session.on("close", () => this.#connections.delete(connection));
      this.#watchIdle();
    });
    server.on("unknownProtocol", (socket: TLSSocket) => this.http1.emit("connection", socket));
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      context.onHandshakeFailure?.();
      context.log.v(3)?.info("TLS handshake failed", { peer: socket.remoteAddress, error: error.message });
      const plain = error.code === "ERR_SSL_HTTP_REQUEST" ? this.#sockets.get(toKey(socket)) : undefined;
      if (plain === undefined) socket.destroy();
      else plain.write(PLAIN_HTTP_RESPONSE, () => socket.destroy());
    });
    return server;
  }

  /** Read once per connection: a certificate cannot change later. */
  #peerOf(socket: TLSSocket): Peer {
    let peer = this.peers.get(socket);
    if (peer === undefined) {
      peer = securePeer(socket);
      this.peers.set(socket, peer);
    }
    return peer;
  }

  /** One timer for all connections, and none while there are none. */
  #watchIdle(): void {
    if (this.#idleTimer !== undefined || this.context.inFlight.draining) return;
    const { clock, limits } = this.context;
    this.#idleTimer = clock.timer(Math.max(10, limits.idleTimeoutMs / 4), () => {
      this.#idleTimer = undefined;
      const now = clock.monotonic();
      for (const connection of this.#connections) {
        if (connection.idleMs(now) >= limits.idleTimeoutMs) connection.closeIdle();
      }
      if (this.#connections.size > 0) this.#watchIdle();
    });
  }
}

function toKey({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Throws when a key does not match its certificate. */
function createServedCertificates(tls: TlsOptions): ServedCertificates {
  const createContext = (pair: NamedTlsPair): NamedContext => ({
    ...pair,
    context: createSecureContext(toSecureOptions(tls, pair)),
  });
  const fallback = createContext({ cert: tls.cert, key: tls.key, names: [] });
  return { tls, selector: new CertificateSelector(fallback, (tls.named ?? []).map(createContext)) };
}

function sessionOptions(limits: ListenLimits, http2: boolean) {
  const offered = http2 ? ["h2", "http/1.1"] : ["http/1.1"];
  return {
    ALPNCallback: ({ protocols }: { protocols: string[] }) => offered.find((name) => protocols.includes(name)),
    handshakeTimeout: limits.handshakeTimeoutMs,
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
