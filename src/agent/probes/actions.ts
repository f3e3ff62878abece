/** The three ways to ask a container something, used by probes and by lifecycle hooks. */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import type { Container } from "../../api/core/container.ts";
import type { HTTPGetAction, TCPSocketAction } from "../../api/core/probe.ts";
import type { Clock } from "../../std/clock.ts";
import { type Runtime, RuntimeError } from "../runtime/runtime.ts";

export interface Outcome {
  readonly result: "success" | "warning" | "failure" | "unknown";
  /** At most `OUTPUT_BYTES_MAX`. */
  readonly output: string;
}

const OUTPUT_BYTES_MAX = 10 * 1024;
const REDIRECTS_MAX = 10;

export interface ExecOptions {
  readonly runtime: Runtime;
  readonly containerId: string;
  readonly command: readonly string[];
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
}

export async function execAction(options: ExecOptions): Promise<Outcome> {
  const { runtime, containerId, command, timeoutSeconds, signal } = options;
  try {
    const answer = await runtime.execSync(
      { containerId, cmd: command, timeout: BigInt(Math.ceil(timeoutSeconds)) },
      signal,
    );
    const output = Buffer.concat([answer.stdout ?? Buffer.alloc(0), answer.stderr ?? Buffer.alloc(0)]);
    return {
      result: (answer.exitCode ?? 0) === 0 ? "success" : "failure",
      output: output.subarray(0, OUTPUT_BYTES_MAX).toString("utf8"),
    };
  } catch (error) {
    signal.throwIfAborted();
    const late = error instanceof RuntimeError && error.code === "DEADLINE_EXCEEDED";
    if (late) {
      return {
        result: "failure",
        output: `command timed out: "${command.join(" ")}" timed out after ${timeoutSeconds}s`,
      };
    }
    return { result: "unknown", output: error instanceof Error ? error.message : String(error) };
  }
}

/** Number or the name of one of the container's ports. Throws as Go would for a name that is neither. */
export function portNumber(port: number | string, container: Container): number {
  if (typeof port === "number") return port;
  const named = (container.ports ?? []).find((each) => each.name === port);
  if (named !== undefined) return named.containerPort;
  const parsed = Number.parseInt(port, 10);
  if (!/^\d+$/.test(port) || parsed < 1 || parsed > 65_535)
    throw new Error(`strconv.Atoi: parsing "${port}": invalid syntax`);
  return parsed;
}

export interface NetworkOptions {
  readonly container: Container;
  readonly podIp: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly userAgent: string;
  /** Other headers than those of probes, which close their connections; for hooks, which do not say so. */
  readonly headers?: Readonly<Record<string, string>>;
}

const PROBE_HEADERS = { connection: "close" };

export async function httpAction(action: HTTPGetAction, options: NetworkOptions): Promise<Outcome> {
  let url: URL;
  try {
    const port = portNumber(action.port, options.container);
    const host = action.host === undefined || action.host === "" ? options.podIp : action.host;
    const scheme = (action.scheme ?? "HTTP").toLowerCase();
    const path = action.path ?? "/";
    url = new URL(
      `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}${path.startsWith("/") ? "" : "/"}${path}`,
    );
  } catch (error) {
    return { result: "unknown", output: error instanceof Error ? error.message : String(error) };
  }
  const headers = headersOf(action, options);
  const start = url;
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const answer = await get(url, headers, options);
    if (answer.error !== undefined) return { result: "failure", output: `Get "${start}": ${answer.error}` };
    if (answer.status >= 300 && answer.status < 400 && answer.location !== undefined) {
      const next = new URL(answer.location, url);
      if (next.hostname !== start.hostname) {
        return { result: "warning", output: `Probe terminated redirects, Response body: ${answer.body}` };
      }
      if (url.protocol !== "https:" || next.protocol === "https:") headers.referer = [url.href];
      url = next;
      continue;
    }
    return answer.status >= 200 && answer.status < 400
      ? { result: "success", output: answer.body }
      : { result: "failure", output: `HTTP probe failed with statuscode: ${answer.status}` };
  }
  return { result: "failure", output: `Get "${start}": stopped after ${REDIRECTS_MAX} redirects` };
}

/** Of a header that is given twice both are sent; one that is given empty is not sent at all. */
function headersOf(action: HTTPGetAction, options: NetworkOptions): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (const { name, value } of action.httpHeaders ?? []) {
    const key = name.toLowerCase();
    headers[key] = [...(headers[key] ?? []), value];
  }
  const usual = { "user-agent": options.userAgent, accept: "*/*", ...(options.headers ?? PROBE_HEADERS) };
  for (const [name, value] of Object.entries(usual)) headers[name] ??= [value];
  return Object.fromEntries(Object.entries(headers).filter(([, values]) => values.some((value) => value !== "")));
}

interface Answer {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
  readonly error: string | undefined;
}

function get(url: URL, headers: Readonly<Record<string, string[]>>, options: NetworkOptions): Promise<Answer> {
  const limit = new AbortController();
  const timer = options.clock.timer(options.timeoutMs, () =>
    limit.abort(new Error("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")),
  );
  const signal = AbortSignal.any([options.signal, limit.signal]);
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const fail = (error: Error): void => {
    const text = limit.signal.aborted ? (limit.signal.reason as Error).message : dialText(error, url);
    resolve({ status: 0, location: undefined, body: "", error: text });
  };
  // A probe asks whether the server answers, not who it is: certificates are not verified, as in Kubernetes.
  const make = url.protocol === "https:" ? httpsRequest : httpRequest;
  const request = make(
    url,
    { headers: { ...headers }, signal, agent: false, rejectUnauthorized: false },
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
  // Node would say that the connection ends, of its own accord.
  if (headers.connection === undefined) request.removeHeader("connection");
  request.on("error", fail);
  request.end();
  return promise.finally(() => timer.cancel());
}

export function tcpAction(action: TCPSocketAction, options: NetworkOptions): Promise<Outcome> {
  let port: number;
  try {
    port = portNumber(action.port, options.container);
  } catch (error) {
    return Promise.resolve({ result: "unknown", output: error instanceof Error ? error.message : String(error) });
  }
  const host = action.host === undefined || action.host === "" ? options.podIp : action.host;
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const socket = connect({ host, port });
  const end = (outcome: Outcome): void => {
    timer.cancel();
    socket.destroy();
    resolve(outcome);
  };
  const timer = options.clock.timer(options.timeoutMs, () =>
    end({ result: "failure", output: `dial tcp ${host}:${port}: i/o timeout` }),
  );
  options.signal.addEventListener("abort", () => end({ result: "unknown", output: "probe cancelled" }), { once: true });
  socket.on("connect", () => end({ result: "success", output: "" }));
  socket.on("error", (error) =>
    end({ result: "failure", output: dialText(error, { hostname: host, port: String(port) }) }),
  );
  return promise;
}

const dialReasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused",
  EHOSTUNREACH: "connect: no route to host",
  ENETUNREACH: "connect: network is unreachable",
  ETIMEDOUT: "i/o timeout",
};

/** In the words that people search for. */
function dialText(error: Error, target: { readonly hostname: string; readonly port: string }): string {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  const reason = dialReasons[code];
  if (reason !== undefined) return `dial tcp ${target.hostname}:${target.port}: ${reason}`;
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER" || code === "EPROTO")
    return "http: server gave HTTP response to HTTPS client";
  return code === "ECONNRESET" ? "EOF" : error.message;
}
