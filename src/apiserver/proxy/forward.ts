/** Forwards a request to another server over HTTP, and returns its response. */
import {
  type ClientRequest,
  type Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from "node:http";
import { type Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { createSecureContext } from "node:tls";
import { StatusError } from "../../api/status.ts";
import type { Connector } from "../../client/transport/connector.ts";
import { createHttpAgent, createHttpsAgent } from "../../client/transport/egress-agents.ts";
import { sniffContentType } from "../../http/content/sniff-content-type.ts";
import type { HttpRequest, HttpResponse, ResponseHeaders } from "../../http/message.ts";
import { describeConnectionError } from "../../http/upgrade/connect-upgrade.ts";
import { traceHeaders } from "../../tracing/span.ts";
import { upgradeConnection } from "./streams/upgrade-connection.ts";

/** Connections to one server; further requests wait. */
const CONNECTIONS_MAX = 256;

export interface Destination {
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  /** Percent-encoded, with a leading slash. */
  readonly path: string;
  /** For servers with their own TLS options, such as node agents. */
  readonly agent?: HttpsAgent | undefined;
}

/** Hop-by-hop headers, and the client's credentials for this server. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade", "http2-settings", "host", "authorization", "expect"],
]);

/** Connections to pods, services and nodes. Certificates of pods and services are not verified, as in Kubernetes. */
export class RequestForwarder implements AsyncDisposable {
  readonly #http: HttpAgent;
  readonly #https: HttpsAgent;

  /** `connector`: how to connect; directly when absent. */
  constructor(connector?: Connector | undefined) {
    const options = { keepAlive: true, maxSockets: CONNECTIONS_MAX };
    this.#http = createHttpAgent(options, connector);
    // One context for all connections, without the certificates of authorities: each would create its own.
    const tls = { secureContext: createSecureContext({ ca: [] }), rejectUnauthorized: false };
    this.#https = createHttpsAgent({ ...options, ...tls }, connector);
  }

  /**
   * Forwards a request that switches protocols, without its query, as kube-apiserver. Returns the server's refusal as
   * it is. Throws a `StatusError` 500 when the server cannot be reached or neither switches nor fails.
   */
  async upgrade(request: HttpRequest, to: Destination, signal: AbortSignal): Promise<HttpResponse> {
    return await upgradeConnection(
      request,
      { ...to, agent: to.agent ?? (to.secure ? this.#https : this.#http) },
      signal,
    );
  }

  /** Resolves with the response headers. Throws a `StatusError` 503 when the server cannot be reached. */
  async forward(request: HttpRequest, to: Destination, signal: AbortSignal): Promise<HttpResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const hasNoBody = !hasBody(request);
    const headers = forwardedHeaders(request);
    // Node.js frames bodies for some methods only; an unframed body would be read as another request.
    if (!hasNoBody && headers["content-length"] === undefined) headers["transfer-encoding"] = "chunked";
    const outgoing = this.#open(request, to, signal, headers);
    outgoing.on("error", reject);
    outgoing.on("response", resolve);
    if (hasNoBody) outgoing.end();
    else {
      const body = Readable.from(request.body);
      // An error of either stream destroys the other.
      body.on("error", (error) => outgoing.destroy(error));
      outgoing.on("close", () => body.destroy());
      body.pipe(outgoing);
    }
    return await plainResponse(await reached(promise, to, signal));
  }

  #open(request: HttpRequest, to: Destination, signal: AbortSignal, headers: Record<string, string>): ClientRequest {
    const path = request.query === "" ? to.path : `${to.path}?${request.query}`;
    const options = { method: request.method, host: to.host, port: to.port, path, headers, signal };
    return to.secure
      ? httpsRequest({ ...options, agent: to.agent ?? this.#https })
      : httpRequest({ ...options, agent: this.#http });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#http.destroy();
    this.#https.destroy();
  }
}

async function reached<T>(response: Promise<T>, { host, port }: Destination, signal: AbortSignal): Promise<T> {
  try {
    return await response;
  } catch (error) {
    signal.throwIfAborted();
    const reason = describeConnectionError(error, host, port);
    throw new StatusError(503, "ServiceUnavailable", `error trying to reach service: ${reason}`, { cause: error });
  }
}

async function plainResponse(response: IncomingMessage): Promise<HttpResponse> {
  const headers = responseHeaders(response.headers);
  const { "content-type": type, "content-encoding": encoding = "" } = headers;
  const first = type === undefined && encoding === "" ? await readFirst(response) : undefined;
  return {
    status: response.statusCode ?? 502,
    headers: first === undefined ? headers : { ...headers, "content-type": sniffContentType(first) },
    body: response,
    resetAtShutdown: true,
  };
}

/** Resolves with the first bytes of the body, which is still read from its start; undefined without any. */
function readFirst(response: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const end = (first?: Buffer): void => {
      response.off("readable", read);
      for (const event of ["end", "error", "close"]) response.off(event, endEmpty);
      resolve(first);
    };
    const endEmpty = (): void => end();
    const read = (): void => {
      const chunk = response.read() as Buffer | null;
      if (chunk === null) return;
      response.unshift(chunk);
      end(chunk);
    };
    response.on("readable", read);
    for (const event of ["end", "error", "close"]) response.on(event, endEmpty);
  });
}

/** Independent of the method: with a content-length, a missing body would consume the next request. */
function hasBody({ method, headers }: HttpRequest): boolean {
  const length = headers["content-length"];
  return length === undefined ? method !== "GET" && method !== "HEAD" : length !== "0";
}

/** Drops headers for this server and adds X-Forwarded headers. */
function forwardedHeaders(request: HttpRequest): Record<string, string> {
  const named = connectionHeaderNames(request.headers.connection);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    const isServerHeader = name.startsWith(":") || name.startsWith("impersonate-") || name.startsWith("x-remote-");
    if (!NOT_FORWARDED.has(name) && !named.has(name) && !isServerHeader) headers[name] = value;
  }
  // The span of this server replaces the client's.
  Object.assign(headers, traceHeaders());
  headers["x-forwarded-uri"] = request.path;
  headers["x-forwarded-proto"] = request.peer.encrypted ? "https" : "http";
  const host = request.headers.host ?? request.headers[":authority"];
  if (host !== undefined) headers["x-forwarded-host"] = host;
  const previous = request.headers["x-forwarded-for"];
  headers["x-forwarded-for"] = previous === undefined ? request.peer.address : `${previous}, ${request.peer.address}`;
  return headers;
}

function responseHeaders(sent: IncomingHttpHeaders): ResponseHeaders {
  const named = connectionHeaderNames(sent.connection);
  const headers: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(sent)) {
    // CORS headers of another server must not apply to this server's responses.
    const isDropped = NOT_FORWARDED.has(name) || named.has(name) || name.startsWith("access-control-");
    if (value !== undefined && !isDropped) headers[name] = value;
  }
  return headers;
}

function connectionHeaderNames(header: string | undefined): ReadonlySet<string> {
  return new Set((header ?? "").split(",").map((name) => name.trim().toLowerCase()));
}
