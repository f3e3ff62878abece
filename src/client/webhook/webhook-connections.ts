/** Connections to webhooks: a pool of undici for each address and TLS identity. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Pool } from "undici";
import { Semaphore } from "../../std/async/semaphore.ts";
import { ByteChunks } from "../../std/collections/byte-chunks.ts";
import type { Connector } from "../transport/connector.ts";
import { type TlsIdentity, tlsOptions } from "../transport/dial.ts";
import { connectVerified } from "../transport/namesake-issuer.ts";

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export interface WebhookRequest {
  readonly url: URL;
  /** Where to connect; the certificate must be that of the URL's host. */
  readonly address: HostPort;
  readonly identity: Pick<TlsIdentity, "ca" | "cert" | "key">;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** A longer response is an error. */
  readonly responseBytesMax: number;
  readonly signal: AbortSignal;
  /** Opens connections; they are direct when absent. */
  readonly connector?: Connector | undefined;
}

export interface WebhookResponse {
  readonly status: number;
  readonly body: Buffer;
}

/** Connections to one webhook, and in all; requests beyond wait. Idle ones are closed after a while. */
const CONNECTIONS_MAX = 64;
const CONNECTIONS_TOTAL_MAX = 512;
const IDLE_MS = 90_000;
/** Pools kept; the one that was unused for the longest time is closed first. */
const POOLS_MAX = 128;

export class WebhookConnections implements Disposable {
  /** In the order of their last use. */
  readonly #pools = new Map<string, Pool>();
  /** Numbers of connectors, which are part of a pool's key. */
  readonly #connectors = new Map<Connector | undefined, number>([[undefined, 0]]);
  readonly #inFlight = new Semaphore(CONNECTIONS_TOTAL_MAX);

  /** Posts the body. A connection that the server closed while it was idle is replaced once. */
  async post(request: WebhookRequest): Promise<WebhookResponse> {
    return await this.#inFlight.run(async () => {
      const pool = await this.#pool(request);
      const isReused = pool.stats.free > 0;
      return await post(pool, request).catch((error: NodeJS.ErrnoException) => {
        if (!isReused || !CLOSED.has(error.code ?? "") || request.signal.aborted) throw error;
        return post(pool, request);
      });
    }, request.signal);
  }

  [Symbol.dispose](): void {
    for (const pool of this.#pools.values()) void pool.destroy();
    this.#pools.clear();
  }

  async #pool({ url, address, identity, connector }: WebhookRequest): Promise<Pool> {
    const { Pool } = await import("undici");
    const { host, port } = address;
    const way = this.#connectors.get(connector) ?? this.#connectors.size;
    this.#connectors.set(connector, way);
    const key = [way, host, port, url.host, identity.ca, identity.cert, identity.key].join("\n");
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      const options = await poolOptions(url, identity, connector);
      pool = this.#pools.get(key) ?? new Pool(origin(address), options);
    }
    this.#pools.delete(key);
    this.#pools.set(key, pool);
    const [oldest] = this.#pools;
    if (this.#pools.size > POOLS_MAX && oldest !== undefined) {
      this.#pools.delete(oldest[0]);
      void oldest[1].close();
    }
    return pool;
  }
}

/** Codes of errors for a connection that the other end has closed. */
const CLOSED: ReadonlySet<string> = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

function origin({ host, port }: HostPort): string {
  return `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The request's signal bounds its time; undici's own limits are off. */
async function poolOptions(
  url: URL,
  identity: WebhookRequest["identity"],
  connector: Connector | undefined,
): Promise<Pool.Options> {
  const { host: _host, port: _port, ...tls } = tlsOptions(url, identity);
  const { ca } = identity;
  return {
    connections: CONNECTIONS_MAX,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
    connect: await connectVerified(
      connector,
      { ...tls, timeout: 0, allowH2: false },
      ca === undefined ? undefined : String(ca),
    ),
  };
}

async function post(pool: Pool, request: WebhookRequest): Promise<WebhookResponse> {
  const { url, headers, body, responseBytesMax, signal } = request;
  const response = await pool.request({
    method: "POST",
    path: `${url.pathname}${url.search}`,
    headers: { ...headers, host: url.host },
    body,
    signal,
  });
  const chunks = new ByteChunks();
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    chunks.add(chunk);
    if (chunks.length > responseBytesMax) throw new Error(`its response is longer than ${responseBytesMax} bytes`);
  }
  // undici frees the connection one turn of the event loop later: a caller's next request would open another.
  await nextTurn();
  return { status: response.statusCode, body: chunks.concat() };
}
