/** HTTP GET of probes and hooks. As in Kubernetes, does not verify certificates, and follows redirects on one host. */
import { request as httpRequest, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type Socket } from "node:net";
import type { HTTPGetAction } from "../../api/core/container/probe.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import {
  describeDialError,
  joinHostPort,
  type NetworkProbeOptions,
  OUTPUT_BYTES_MAX,
  type ProbeResult,
  resolveHost,
  resolvePort,
} from "./actions.ts";

/** Number of requests, including the first one. */
const REQUESTS_MAX = 10;
/** The error for a server that does not support TLS. */
export const NO_TLS = "http: server gave HTTP response to HTTPS client";
const PROBE_HEADERS = { Connection: "close" };
/** Fields that Go's client writes itself. */
const UNWRITTEN_HEADERS: ReadonlySet<string> = new Set(["Host", "Content-Length", "Transfer-Encoding", "Trailer"]);
const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export async function probeHttp(action: HTTPGetAction, options: NetworkProbeOptions): Promise<ProbeResult> {
  const response = await followRedirects(action, options);
  return "outcome" in response ? response : toResult(response);
}

/** A hook succeeds with any response, whatever its status. */
export async function sendHttpHook(action: HTTPGetAction, options: NetworkProbeOptions): Promise<ProbeResult> {
  const response = await followRedirects(action, options);
  return "outcome" in response ? response : { outcome: "success", output: response.body };
}

async function followRedirects(
  action: HTTPGetAction,
  options: NetworkProbeOptions,
): Promise<ProbeResult | HttpResponse> {
  let start: URL;
  try {
    const port = resolvePort(action.port, options.container);
    const path = encodePath(action.path ?? "/");
    const authority = joinHostPort(resolveHost(action, options), port);
    start = new URL(
      `${(action.scheme ?? "HTTP").toLowerCase()}://${authority}${path.startsWith("/") ? "" : "/"}${path}`,
    );
  } catch (error) {
    return { outcome: "unknown", output: error instanceof Error ? error.message : String(error) };
  }
  const headers = makeHeaders(action, options);
  let url = start;
  for (let requests = 1; ; requests++) {
    const host = url.host + defaultPort(url, start);
    const response = await get(url, orderHeaders(headers, host, options), options);
    const fail = (text: string): ProbeResult => ({
      outcome: "failure",
      output: `Get "${formatUrl(url, start)}": ${text}`,
    });
    if (response.error !== undefined) return fail(response.error);
    const next = resolveRedirect(response, url);
    if (next === undefined || next.hostname !== start.hostname) return response;
    if (requests === REQUESTS_MAX) return fail(`stopped after ${REQUESTS_MAX} redirects`);
    if (url.protocol !== "https:" || next.protocol === "https:") headers.set("Referer", [formatUrl(url, start)]);
    url = next;
  }
}

/** A path with a percent sign that encodes nothing is a literal one as a whole, as in Kubernetes. */
function encodePath(path: string): string {
  const isEncoded = !/%(?![\da-f]{2})/i.test(path.split(/[?#]/)[0] ?? "");
  return isEncoded ? path : path.replace(/[%?#]/g, encodeURIComponent);
}

/** The URL of a redirect; undefined for other responses. */
function resolveRedirect({ status, location }: HttpResponse, url: URL): URL | undefined {
  if (!REDIRECT_STATUSES.has(status) || location === undefined || location === "") return undefined;
  return URL.parse(location, url) ?? undefined;
}

function toResult({ status, body }: HttpResponse): ProbeResult {
  if (status < 200 || status >= 400)
    return { outcome: "failure", output: `HTTP probe failed with statuscode: ${status}` };
  if (status < 300) return { outcome: "success", output: body };
  return { outcome: "warning", output: `Probe terminated redirects, Response body: ${body}` };
}

/** The first URL always with its port, as in Go, even the default port of its scheme. */
function formatUrl(url: URL, start: URL): string {
  const port = defaultPort(url, start);
  return port === "" ? url.href : url.href.replace(url.host, `${url.host}${port}`);
}

function defaultPort(url: URL, start: URL): string {
  if (url.port !== "" || url.origin !== start.origin) return "";
  return url.protocol === "https:" ? ":443" : ":80";
}

/** Go's canonical form of a field name; a name with other characters stays as it is. */
function canonicalFieldName(name: string): string {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return name;
  return name.toLowerCase().replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
}

/** The fields of the action by canonical name, with all values, and the defaults of probes and hooks. */
function makeHeaders(action: HTTPGetAction, options: NetworkProbeOptions): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (const { name, value } of action.httpHeaders ?? []) {
    const key = canonicalFieldName(name);
    headers.set(key, [...(headers.get(key) ?? []), value]);
  }
  for (const [name, value] of [
    ["User-Agent", options.userAgent],
    ["Accept", "*/*"],
  ] as const) {
    if (!headers.has(name)) headers.set(name, [value]);
    else if (headers.get(name)?.[0] === "") headers.delete(name);
  }
  return headers;
}

/**
 * The fields in the order of Go's client, which programs that read requests line by line see: Host, User-Agent, the
 * others sorted by name, and last those that the client adds.
 */
function orderHeaders(
  headers: ReadonlyMap<string, string[]>,
  host: string,
  options: NetworkProbeOptions,
): OutgoingHttpHeaders {
  const ordered: OutgoingHttpHeaders = { Host: headers.get("Host")?.[0] || host };
  const agent = headers.get("User-Agent")?.[0];
  if (agent !== undefined) ordered["User-Agent"] = agent;
  for (const [name, values] of [...headers].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (name !== "User-Agent" && !UNWRITTEN_HEADERS.has(name)) ordered[name] = values;
  }
  for (const [name, value] of Object.entries(options.headers ?? PROBE_HEADERS)) ordered[name] ??= value;
  return ordered;
}

/** Why Go's client does not understand the start of a response. */
function describeMalformed(text: string): string {
  const [line = "", ...others] = text.split(/\r?\n/);
  const [protocol = "", rest] = splitAt(line, " ");
  if (rest === undefined) return `malformed HTTP response ${goQuote(line)}`;
  const [status = ""] = splitAt(rest.trimStart(), " ");
  if (!/^\d{3}$/.test(status)) return `malformed HTTP status code ${goQuote(status)}`;
  if (!/^HTTP\/\d\.\d$/.test(protocol)) return `malformed HTTP version ${goQuote(protocol)}`;
  const field = others.slice(0, others.indexOf("")).find((each) => !each.includes(":")) ?? "";
  return `malformed MIME header: missing colon: ${goQuote(field)}`;
}

function splitAt(text: string, separator: string): readonly [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}

interface HttpResponse {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
  readonly error: string | undefined;
}

function get(url: URL, headers: Readonly<OutgoingHttpHeaders>, options: NetworkProbeOptions): Promise<HttpResponse> {
  const limit = new AbortController();
  const timer = options.clock.timer(options.timeoutMs, () =>
    limit.abort(new Error("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")),
  );
  const signal = AbortSignal.any([options.signal, limit.signal]);
  const { promise, resolve } = Promise.withResolvers<HttpResponse>();
  let addresses: string | undefined;
  const fail = (error: Error): void => {
    const text = limit.signal.aborted
      ? (limit.signal.reason as Error).message
      : describeHttpError(error, url, addresses);
    resolve({ status: 0, location: undefined, body: "", error: text });
  };
  // A probe tests whether the server responds, not its identity: certificates are not verified, as in Kubernetes.
  const createRequest = url.protocol === "https:" ? httpsRequest : httpRequest;
  const request = createRequest(
    url,
    {
      headers,
      signal,
      agent: false,
      rejectUnauthorized: false,
      // The Host header does not affect the certificate that the server selects.
      servername: isIP(url.hostname.replace(/^\[|\]$/g, "")) === 0 ? url.hostname : "",
    },
    (response) => {
      let body = Buffer.alloc(0);
      const done = (): void =>
        resolve({
          status: response.statusCode ?? 0,
          location: response.headers.location,
          body: body.toString("utf8"),
          error: undefined,
        });
      response.on("data", (chunk: Buffer) => {
        body = Buffer.concat([body, chunk]).subarray(0, OUTPUT_BYTES_MAX);
        if (body.length === OUTPUT_BYTES_MAX) {
          done();
          response.destroy();
        }
      });
      response.on("end", done);
      response.on("error", fail);
    },
  );
  // Node adds `Connection: close` by default.
  if (headers.Connection === undefined) request.removeHeader("connection");
  request.on("socket", (socket) => socket.once("connect", () => (addresses = describeAddresses(socket))));
  request.on("error", fail);
  request.end();
  return promise.finally(() => timer.cancel());
}

/** Of both ends; a socket that is closed has none. */
function describeAddresses({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return [joinHostPort(localAddress ?? "", localPort ?? 0), joinHostPort(remoteAddress ?? "", remotePort ?? 0)].join(
    "->",
  );
}

interface HttpError extends NodeJS.ErrnoException {
  /** What the parser could not read. */
  readonly rawPacket?: Buffer;
}

function describeHttpError(error: HttpError, url: URL, addresses: string | undefined): string {
  const { code = "", syscall, rawPacket } = error;
  if (code === "ECONNRESET" && syscall === "read" && addresses !== undefined)
    return `read tcp ${addresses}: read: connection reset by peer`;
  if (code.startsWith("HPE_") && rawPacket !== undefined)
    return `net/http: HTTP/1.x transport connection broken: ${describeMalformed(rawPacket.toString("latin1"))}`;
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER" || code === "ERR_SSL_PACKET_LENGTH_TOO_LONG" || code === "EPROTO") {
    return NO_TLS;
  }
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return describeDialError(error, url.hostname.replace(/^\[|\]$/g, ""), port);
}
