/** HTTP GET of probes and hooks. As in Kubernetes, does not verify certificates, and follows redirects on one host. */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import type { HTTPGetAction } from "../../api/core/container/probe.ts";
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
const PROBE_HEADERS = { connection: "close" };
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
    const path = action.path ?? "/";
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
    const response = await get(url, headers, options);
    const fail = (text: string): ProbeResult => ({
      outcome: "failure",
      output: `Get "${formatUrl(url, start)}": ${text}`,
    });
    if (response.error !== undefined) return fail(response.error);
    const next = resolveRedirect(response, url);
    if (next === undefined || next.hostname !== start.hostname) return response;
    if (requests === REQUESTS_MAX) return fail(`stopped after ${REQUESTS_MAX} redirects`);
    if (url.protocol !== "https:" || next.protocol === "https:") headers.referer = [formatUrl(url, start)];
    url = next;
  }
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
  const port = url.port === "" && url.origin === start.origin ? (url.protocol === "https:" ? ":443" : ":80") : "";
  return port === "" ? url.href : url.href.replace(url.host, `${url.host}${port}`);
}

/** Sends all values of a repeated header, and no header whose values are empty. */
function makeHeaders(action: HTTPGetAction, options: NetworkProbeOptions): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (const { name, value } of action.httpHeaders ?? []) {
    const key = name.toLowerCase();
    headers[key] = [...(headers[key] ?? []), value];
  }
  const defaults = { "user-agent": options.userAgent, accept: "*/*", ...(options.headers ?? PROBE_HEADERS) };
  for (const [name, value] of Object.entries(defaults)) headers[name] ??= [value];
  return Object.fromEntries(Object.entries(headers).filter(([, values]) => values.some((value) => value !== "")));
}

interface HttpResponse {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
  readonly error: string | undefined;
}

function get(
  url: URL,
  headers: Readonly<Record<string, string[]>>,
  options: NetworkProbeOptions,
): Promise<HttpResponse> {
  const limit = new AbortController();
  const timer = options.clock.timer(options.timeoutMs, () =>
    limit.abort(new Error("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")),
  );
  const signal = AbortSignal.any([options.signal, limit.signal]);
  const { promise, resolve } = Promise.withResolvers<HttpResponse>();
  const fail = (error: Error): void => {
    const text = limit.signal.aborted ? (limit.signal.reason as Error).message : describeHttpError(error, url);
    resolve({ status: 0, location: undefined, body: "", error: text });
  };
  // A probe tests whether the server responds, not its identity: certificates are not verified, as in Kubernetes.
  const createRequest = url.protocol === "https:" ? httpsRequest : httpRequest;
  const { host, ...others } = headers;
  const request = createRequest(
    url,
    {
      headers: { ...others, ...(host?.[0] === undefined ? {} : { host: host[0] }) },
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
  if (headers.connection === undefined) request.removeHeader("connection");
  request.on("error", fail);
  request.end();
  return promise.finally(() => timer.cancel());
}

function describeHttpError(error: Error, url: URL): string {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER" || code === "ERR_SSL_PACKET_LENGTH_TOO_LONG" || code === "EPROTO") {
    return NO_TLS;
  }
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return describeDialError(error, url.hostname.replace(/^\[|\]$/g, ""), port);
}
