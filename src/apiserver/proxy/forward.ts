/** A request passed on to another server over HTTP, and its answer passed back. */
import { Agent as HttpAgent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { StatusError } from "../../api/status.ts";
import type { HttpRequest, HttpResponse, ResponseHeaders } from "../../http/message.ts";

/** Connections to one server; more requests than that wait. */
const CONNECTIONS_MAX = 256;

export interface Destination {
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  /** Percent-encoded, with a slash in front. */
  readonly path: string;
  /** For servers that are known otherwise than by name, such as node agents. */
  readonly agent?: HttpsAgent | undefined;
}

/** Headers that belong to one connection, and those by which clients prove to this server who they are. */
const KEPT_BACK: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade", "http2-settings", "host", "authorization", "expect"],
]);

/** Connections to pods, services and nodes. Certificates of pods and services are not verified, as in Kubernetes. */
export class RequestForwarder implements AsyncDisposable {
  readonly #http = new HttpAgent({ keepAlive: true, maxSockets: CONNECTIONS_MAX });
  readonly #https = new HttpsAgent({ keepAlive: true, maxSockets: CONNECTIONS_MAX, rejectUnauthorized: false });

  /** Resolves when the answer's headers are in. Throws a `StatusError` 503 when the server cannot be reached. */
  async forward(request: HttpRequest, to: Destination, signal: AbortSignal): Promise<HttpResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const { method } = request;
    const path = request.query === "" ? to.path : `${to.path}?${request.query}`;
    const whole = !hasBody(request);
    const headers = forwardedHeaders(request);
    // Node frames bodies of its own accord for some methods only; of others they would be read as another request.
    if (!whole && headers["content-length"] === undefined) headers["transfer-encoding"] = "chunked";
    const options = { method, host: to.host, port: to.port, path, headers, signal };
    const asking = to.secure
      ? httpsRequest({ ...options, agent: to.agent ?? this.#https })
      : httpRequest({ ...options, agent: this.#http });
    asking.on("error", reject);
    asking.on("response", resolve);
    if (whole) asking.end();
    else {
      const body = Readable.from(request.body);
      // Whichever end breaks, the other is told.
      body.on("error", (error) => asking.destroy(error));
      asking.on("close", () => body.destroy());
      body.pipe(asking);
    }
    let answer: IncomingMessage;
    try {
      answer = await promise;
    } catch (error) {
      signal.throwIfAborted();
      const why = error instanceof Error ? error.message : String(error);
      throw new StatusError(503, "ServiceUnavailable", `error trying to reach service: ${why}`, { cause: error });
    }
    return { status: answer.statusCode ?? 502, headers: answerHeaders(answer.headers), body: answer };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#http.destroy();
    this.#https.destroy();
  }
}

/** Whatever the method: where a length is announced, a body left out would swallow the next request. */
function hasBody({ method, headers }: HttpRequest): boolean {
  const length = headers["content-length"];
  return length === undefined ? method !== "GET" && method !== "HEAD" : length !== "0";
}

/** Without what concerns this server, with what tells the other how it was reached. */
function forwardedHeaders(request: HttpRequest): Record<string, string> {
  const named = connectionNames(request.headers.connection);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    const isOurs = name.startsWith(":") || name.startsWith("impersonate-") || name.startsWith("x-remote-");
    if (!KEPT_BACK.has(name) && !named.has(name) && !isOurs) headers[name] = value;
  }
  headers["x-forwarded-uri"] = request.path;
  headers["x-forwarded-proto"] = request.peer.encrypted ? "https" : "http";
  const host = request.headers.host ?? request.headers[":authority"];
  if (host !== undefined) headers["x-forwarded-host"] = host;
  const before = request.headers["x-forwarded-for"];
  headers["x-forwarded-for"] = before === undefined ? request.peer.address : `${before}, ${request.peer.address}`;
  return headers;
}

function answerHeaders(sent: IncomingHttpHeaders): ResponseHeaders {
  const named = connectionNames(sent.connection);
  const headers: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(sent)) {
    // Who may read this server's answers is for this server to say.
    const isOthers = KEPT_BACK.has(name) || named.has(name) || name.startsWith("access-control-");
    if (value !== undefined && !isOthers) headers[name] = value;
  }
  return headers;
}

function connectionNames(header: string | undefined): ReadonlySet<string> {
  return new Set((header ?? "").split(",").map((name) => name.trim().toLowerCase()));
}
