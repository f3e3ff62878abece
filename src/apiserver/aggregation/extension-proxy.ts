/** Forwards requests to extension servers, with the identity of the user in headers, as kube-aggregator. */
import { type IncomingMessage, validateHeaderValue } from "node:http";
import { request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { createSecureContext } from "node:tls";
import { isTokenProtocol } from "../../auth/authn/token/bearer-token.ts";
import {
  type HttpRequest,
  type HttpResponse,
  headerValues,
  type ResponseHeaders,
  toOutgoingHeaders,
} from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import { UpgradeError } from "../../http/upgrade/connect-upgrade.ts";
import { forwardUpgrade, upgradeRequestHeaders } from "../../http/upgrade/forward-upgrade.ts";
import { offeredProtocols } from "../../http/websocket/handshake.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { traceHeaders } from "../../tracing/span.ts";
import type { OnTermination } from "../filters/request-deadline.ts";
import { type RequestContext, userOf } from "../request/request-context.ts";
import { describeFailure } from "./connection-error.ts";
import type { ExtensionConnections } from "./connections.ts";
import type { AggregatorMetrics } from "./metrics.ts";
import { identityHeaders } from "./proxy-headers.ts";
import type { ExtensionApi } from "./registered-api.ts";
import { formatHostPort, type HostPort, type ServiceResolver } from "./service-resolver.ts";

export interface ExtensionProxyDeps {
  readonly connections: ExtensionConnections;
  readonly resolver: Pick<ServiceResolver, "resolve">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<AggregatorMetrics, "countConnectionFailure">;
  readonly onTermination: OnTermination;
  /** `--aggregator-reject-forwarding-redirect` */
  readonly rejectsRedirects: boolean;
  /** The gate RemoteRequestHeaderUID. */
  readonly sendsUid: boolean;
  /** Further headers of each request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Discovery of a group version is quick; a server that does not respond must not hold up its clients. */
const DISCOVERY_TIMEOUT_MS = 5000;
const NOSNIFF = { "x-content-type-options": "nosniff" };
const REDIRECT_REJECTED = "the backend attempted to redirect this request, which is not permitted";
const NO_PEM = "unable to load root certificates: unable to parse bytes as PEM block";

/** Headers of the connection, and the client's credentials for this server. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade", "http2-settings", "host", "authorization", "expect"],
]);

type RequestHeaders = Record<string, string | string[]>;

export class ExtensionProxy {
  readonly #deps: ExtensionProxyDeps;

  constructor(deps: ExtensionProxyDeps) {
    this.#deps = deps;
  }

  async forward(api: ExtensionApi, context: RequestContext): Promise<HttpResponse> {
    const { connections, resolver, log } = this.#deps;
    if (!api.isAvailable) return this.#error(context, 503, "service unavailable");
    const invalid = authorityError(api);
    if (invalid !== undefined) return this.#error(context, 500, invalid);
    let address: HostPort;
    try {
      address = await resolver.resolve(api.service);
    } catch (error) {
      log.error("Cannot resolve the service of an API service", error, { name: api.name });
      return this.#error(context, 503, "service unavailable");
    }
    const agent = connections.agentFor(api);
    if (context.request.upgradable === true) return await this.#upgrade(api, context, address, agent);
    return await this.#forward(api, context, address, agent);
  }

  async #forward(
    api: ExtensionApi,
    context: RequestContext,
    address: HostPort,
    agent: ReturnType<ExtensionConnections["agentFor"]>,
  ): Promise<HttpResponse> {
    const { rejectsRedirects } = this.#deps;
    const limit = this.#discoveryLimit(context);
    try {
      const headers = this.#requestHeaders(context, address);
      const response = await send(context, { address, agent, headers, signal: limit.signal });
      const { location } = response.headers;
      const isRedirect = response.statusCode !== undefined && response.statusCode >= 300 && response.statusCode <= 399;
      if (isRedirect && location !== undefined && rejectsRedirects) {
        response.destroy();
        return textResponse(502, REDIRECT_REJECTED);
      }
      response.once("close", limit.end);
      return {
        status: response.statusCode ?? 502,
        headers: responseHeaders(response, address),
        body: response,
        resetAtShutdown: true,
      };
    } catch (error) {
      const isExpired = limit.signal.aborted && !context.signal.aborted;
      limit.end();
      context.signal.throwIfAborted();
      this.#deps.metrics.countConnectionFailure(error);
      const reason = isExpired ? "context deadline exceeded" : describeFailure(error, urlOf(api, address));
      return textResponse(503, `error trying to reach service: ${reason}\n`, NOSNIFF);
    }
  }

  /** Exec and attach through an extension server: bytes pass unchanged once the protocol is switched. */
  async #upgrade(
    api: ExtensionApi,
    context: RequestContext,
    address: HostPort,
    agent: ReturnType<ExtensionConnections["agentFor"]>,
  ): Promise<HttpResponse> {
    const { request, signal } = context;
    try {
      return await forwardUpgrade(request, {
        method: request.method,
        secure: true,
        ...address,
        path: targetOf(request),
        headers: { ...this.#upgradeHeaders(context), host: formatHostPort(address) },
        agent,
        signal,
      });
    } catch (error) {
      if (!(error instanceof UpgradeError)) throw error;
      this.#deps.metrics.countConnectionFailure(error.cause);
      const text = error.isResponse
        ? error.message
        : `error dialing backend: ${describeFailure(error.cause, urlOf(api, address))}`;
      return textResponse(503, `${text}\n`, NOSNIFF);
    }
  }

  #requestHeaders(context: RequestContext, address: HostPort): RequestHeaders {
    const { request } = context;
    const dropped = connectionHeaders(request.headers.connection);
    const headers: RequestHeaders = {};
    for (const name of Object.keys(request.headers)) {
      if (NOT_FORWARDED.has(name) || dropped.has(name) || isIdentityHeader(name)) continue;
      const values = headerValues(request, name);
      headers[name] = values.length === 1 ? values[0]! : [...values];
    }
    const { "x-forwarded-for": previous } = request.headers;
    const { address: client } = request.peer;
    headers.host = formatHostPort(address);
    headers["X-Forwarded-For"] = previous === undefined ? client : `${previous}, ${client}`;
    delete headers["x-forwarded-for"];
    // The span of this server replaces the client's.
    Object.assign(headers, traceHeaders());
    headers["x-forwarded-host"] = formatHostPort(address);
    headers["x-forwarded-proto"] = "https";
    headers["x-forwarded-uri"] = request.path;
    return { ...headers, ...this.#identity(context) };
  }

  #upgradeHeaders(context: RequestContext): RequestHeaders {
    const { request } = context;
    const { "sec-websocket-protocol": _, ...all } = upgradeRequestHeaders(request);
    const headers = Object.fromEntries(Object.entries(all).filter(([name]) => !isIdentityHeader(name)));
    const protocols = offeredProtocols(request).filter((name) => !isTokenProtocol(name));
    return toOutgoingHeaders({
      ...headers,
      ...(protocols.length === 0 ? {} : { "sec-websocket-protocol": protocols.join(", ") }),
      ...this.#identity(context),
    });
  }

  /** Throws for a name that no header can hold. */
  #identity(context: RequestContext): RequestHeaders {
    const headers = toOutgoingHeaders(identityHeaders(userOf(context), this.#deps.sendsUid));
    for (const [name, values] of Object.entries(headers)) {
      for (const value of [values].flat()) validateHeaderValue(name, value);
    }
    return { ...headers, ...this.#deps.headers, "audit-id": context.auditId };
  }

  /** Aborts with the request, and for the discovery of a group version after five seconds. */
  #discoveryLimit({ info, signal }: RequestContext): { readonly signal: AbortSignal; readonly end: () => void } {
    if (info.isResourceRequest) return { signal, end: () => {} };
    const limit = new AbortController();
    const abort = (): void => limit.abort();
    const timer = this.#deps.clock.timer(DISCOVERY_TIMEOUT_MS, abort);
    signal.addEventListener("abort", abort);
    const end = (): void => {
      timer.cancel();
      signal.removeEventListener("abort", abort);
    };
    return { signal: limit.signal, end };
  }

  #error(context: RequestContext, code: number, text: string): HttpResponse {
    this.#deps.onTermination(context, code);
    return textResponse(code, `${text}\n`, NOSNIFF);
  }
}

/** Undefined when the authority of the API service can be used. */
function authorityError({ caBundle }: ExtensionApi): string | undefined {
  if (caBundle === "") return undefined;
  if (!caBundle.includes("-----BEGIN CERTIFICATE-----")) return NO_PEM;
  try {
    createSecureContext({ ca: caBundle });
    return undefined;
  } catch {
    return NO_PEM;
  }
}

interface SendOptions {
  readonly address: HostPort;
  readonly agent: ReturnType<ExtensionConnections["agentFor"]>;
  readonly headers: RequestHeaders;
  readonly signal: AbortSignal;
}

/** Resolves with the response's headers. Repeats a request without a body when the server closed an idle connection. */
async function send(context: RequestContext, options: SendOptions): Promise<IncomingMessage> {
  const { request } = context;
  if (hasBody(request)) return await sendOnce(request, options);
  try {
    return await sendOnce(request, options);
  } catch (error) {
    if (!(error instanceof ReusedConnectionError)) throw error;
    return await sendOnce(request, options);
  }
}

class ReusedConnectionError extends Error {
  override readonly name = "ReusedConnectionError";
  readonly code = "ECONNRESET";
}

function sendOnce(request: HttpRequest, { address, agent, headers, signal }: SendOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const framed =
      hasBody(request) && headers["content-length"] === undefined
        ? { ...headers, "transfer-encoding": "chunked" }
        : headers;
    const outgoing = httpsRequest({
      method: request.method,
      ...address,
      path: targetOf(request),
      headers: framed,
      agent,
      signal,
    });
    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      const isStale = outgoing.reusedSocket && error.code === "ECONNRESET";
      reject(isStale ? new ReusedConnectionError("EOF", { cause: error }) : error);
    });
    outgoing.on("response", resolve);
    if (!hasBody(request)) {
      outgoing.end();
      return;
    }
    const body = Readable.from(request.body);
    // An error of either stream destroys the other.
    body.on("error", (error) => outgoing.destroy(error));
    outgoing.on("close", () => body.destroy());
    body.pipe(outgoing);
  });
}

/** Independent of the method: with a content-length, a missing body would consume the next request. */
function hasBody({ method, headers }: HttpRequest): boolean {
  const length = headers["content-length"];
  if (length !== undefined) return length !== "0";
  return headers["transfer-encoding"] !== undefined || !["GET", "HEAD", "OPTIONS"].includes(method);
}

/** The path and the query, whose parameters Go's libraries sort. */
function targetOf({ path, query }: HttpRequest): string {
  if (query === "") return path;
  const parameters = query
    .split("&")
    .filter((pair) => pair !== "" && !pair.includes(";"))
    .map((pair) => {
      const [name = "", ...rest] = pair.split("=");
      return { name: decodeQuery(name), value: decodeQuery(rest.join("=")) };
    })
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const encoded = parameters.map(({ name, value }) => `${encodeQuery(name)}=${encodeQuery(value)}`).join("&");
  return encoded === "" ? path : `${path}?${encoded}`;
}

function decodeQuery(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/** Percent-encodes all but unreserved characters (RFC 3986, section 2.3); a space becomes a plus sign. */
function encodeQuery(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}

/** Headers of an authenticating proxy, and of impersonation, which this server has applied. */
function isIdentityHeader(name: string): boolean {
  return name.startsWith(":") || name.startsWith("impersonate-") || name.startsWith("x-remote-");
}

function connectionHeaders(header: string | undefined): ReadonlySet<string> {
  return new Set((header ?? "").split(",").map((name) => name.trim().toLowerCase()));
}

function responseHeaders(response: IncomingMessage, address: HostPort): ResponseHeaders {
  const dropped = connectionHeaders(response.headers.connection);
  const headers: Record<string, string | readonly string[]> = {};
  for (const [name, values = []] of Object.entries(response.headersDistinct)) {
    // CORS headers of another server must not apply to this server's responses.
    if (NOT_FORWARDED.has(name) || dropped.has(name) || name.startsWith("access-control-")) continue;
    headers[name] = values.length === 1 ? values[0]! : values;
  }
  if (typeof headers.location === "string") headers.location = absoluteLocation(headers.location, address);
  return headers;
}

/** A location on the extension server gets its host, as Kubernetes' proxies write it. */
function absoluteLocation(location: string, address: HostPort): string {
  const host = formatHostPort(address);
  if (location.startsWith("/") && !location.startsWith("//")) return `https://${host}${location}`;
  return location.startsWith(`http://${host}/`) ? location.replace(/^http:/, "https:") : location;
}

/** The URL whose host is the name in the certificate. */
function urlOf({ service, insecureSkipTlsVerify }: ExtensionApi, address: HostPort): URL {
  const host = insecureSkipTlsVerify ? address.host : `${service.name}.${service.namespace}.svc`;
  return new URL(`https://${formatHostPort({ host, port: address.port })}`);
}
