import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { type Clock, systemClock } from "../../std/time/clock.ts";
import type { Transport } from "../client.ts";
import type { ServerCredentials } from "./credentials.ts";
import { dial, type TlsIdentity } from "./dial.ts";
import { H1Upstream } from "./h1-upstream.ts";
import { H2Upstream } from "./h2-upstream.ts";
import { NotSentError, type OutgoingRequest, type Upstream } from "./upstream.ts";

export interface TransportOptions extends ServerCredentials {
  readonly userAgent?: string | undefined;
  readonly clock?: Clock | undefined;
}

/** A transport over the network, which resolves with the headers of a response. */
export type NetworkTransport = Transport &
  AsyncDisposable & {
    /** New connections use this client certificate; open ones finish their requests. */
    setClientCertificate(cert: string | Buffer, key: string | Buffer): void;
  };

/**
 * HTTP/2 over one connection, which is replaced when it fails; more connections open at the server's stream limit.
 * HTTP/1.1 for `http://` and for servers without HTTP/2. Request bodies are held in memory.
 */
export function networkTransport(options: TransportOptions): NetworkTransport {
  const pool = new Pool(options);
  const send: Transport = (request) => pool.send(request);
  return Object.assign(send, {
    setClientCertificate: (cert: string | Buffer, key: string | Buffer) => pool.setIdentity({ cert, key }),
    [Symbol.asyncDispose]: async () => pool.close(),
  });
}

class Pool {
  readonly #options: TransportOptions;
  readonly #url: URL;
  readonly #prefix: string;
  readonly #clock: Clock;
  #identity: TlsIdentity;
  #upstreams: readonly Upstream[] = [];
  /** The connection that is being opened; all requests without a usable one wait for it. */
  #dialing: Promise<Upstream> | undefined;
  #closed = false;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#url = serverUrl(options.server);
    this.#prefix = this.#url.pathname.replace(/\/+$/, "");
    this.#clock = options.clock ?? systemClock;
    this.#identity = options;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const outgoing = await this.#outgoing(request);
    for (let attempt = 1; ; attempt++) {
      const reused = this.#upstreams.some((upstream) => upstream.usable);
      let upstream = await abortable(this.#upstream(), request.signal);
      // Other waiting requests may have used its streams. No await may come between this check and send().
      for (let full = 0; !upstream.usable && full < FULL_MAX; full++) {
        upstream = await abortable(this.#upstream(), request.signal);
      }
      try {
        return await upstream.send(outgoing);
      } catch (error) {
        // An idle connection may be closed already: a request that is safe to repeat is retried over a new one.
        const safe =
          error instanceof NotSentError || (reused && (request.method === "GET" || request.method === "HEAD"));
        if (attempt > 1 || !safe || request.signal.aborted) throw error;
        upstream.retire();
      }
    }
  }

  setIdentity(change: Pick<TlsIdentity, "cert" | "key">): void {
    this.#identity = { ...this.#identity, ...change };
    for (const upstream of this.#upstreams) upstream.retire();
    // A connection that is being opened uses the previous certificate.
    void this.#dialing?.then((upstream) => upstream.retire()).catch(() => {});
    this.#dialing = undefined;
  }

  close(): void {
    this.#closed = true;
    for (const upstream of this.#upstreams) upstream.destroy();
    this.#upstreams = [];
  }

  async #outgoing(request: HttpRequest): Promise<OutgoingRequest> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request.body) chunks.push(chunk);
    const { token, userAgent } = this.#options;
    const bearer = typeof token === "function" ? await token() : token;
    return {
      method: request.method,
      target: `${this.#prefix}${request.path}${request.query === "" ? "" : `?${request.query}`}`,
      headers: {
        ...(userAgent === undefined ? {} : { "user-agent": userAgent }),
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        ...request.headers,
      },
      body: Buffer.concat(chunks),
      signal: request.signal,
    };
  }

  #upstream(): Promise<Upstream> {
    if (this.#closed) return Promise.reject(this.#closedError());
    const usable = this.#upstreams.find((upstream) => upstream.usable);
    if (usable !== undefined) return Promise.resolve(usable);
    if (this.#dialing === undefined) {
      const dialing = this.#dial(this.#identity).finally(() => {
        if (this.#dialing === dialing) this.#dialing = undefined;
      });
      this.#dialing = dialing;
    }
    return this.#dialing;
  }

  async #dial(identity: TlsIdentity): Promise<Upstream> {
    const upstream = await this.#connect(identity);
    if (this.#closed) {
      upstream.destroy();
      throw this.#closedError();
    }
    this.#upstreams = [...this.#upstreams.filter((other) => other.alive), upstream];
    return upstream;
  }

  async #connect(identity: TlsIdentity): Promise<Upstream> {
    if (this.#url.protocol === "http:") return new H1Upstream(this.#url, identity);
    const socket = await dial(this.#url, identity, this.#clock);
    if (socket.alpnProtocol === "h2") {
      const upstream = new H2Upstream(this.#url, socket, this.#clock);
      await upstream.ready();
      return upstream;
    }
    socket.destroy();
    return new H1Upstream(this.#url, identity);
  }

  #closedError(): Error {
    return new Error(`The transport to ${this.#url.host} is closed`);
  }
}

/** Connections tried for a request before it waits on the last. */
const FULL_MAX = 32;

function serverUrl(server: string): URL {
  const url = URL.parse(server);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:") || url.hostname === "") {
    throw new Error(`Cannot use ${JSON.stringify(server)} as a server: expected https://host:port`);
  }
  return url;
}

function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    const done = (): void => signal.removeEventListener("abort", abort);
    work.finally(done).then(resolve, reject);
  });
}
