/** Calls the gRPC health service (grpc.health.v1) over a new connection. */
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { gunzipSync } from "node:zlib";
import type { GRPCAction } from "../../api/core/container/probe.ts";
import { int32, message, optional, string } from "../../schema/define.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { toGoCode } from "../runtime/runtime.ts";
import { joinHostPort, type NetworkProbeOptions, OUTPUT_BYTES_MAX, type ProbeResult } from "./actions.ts";

const healthCheckRequest = message("grpc.health.v1.HealthCheckRequest", { service: optional(1, string) });
const healthCheckResponse = message("grpc.health.v1.HealthCheckResponse", { status: optional(1, int32) });

const PATH = "/grpc.health.v1.Health/Check";
const SERVING = 1;
const servingStatuses = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
/** Time between two connection attempts, as in gRPC's clients. */
const RECONNECT_MS = 1_000;
/** Kubernetes' probes send this user agent. */
const GRPC_CLIENT = "grpc-go/1.68.1";

/** Names of gRPC's status codes, by number. */
const GRPC_CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];

export async function checkGrpcHealth(action: GRPCAction, options: NetworkProbeOptions): Promise<ProbeResult> {
  const { clock, timeoutMs } = options;
  const address = joinHostPort(options.podIp, action.port);
  const within = `${timeoutMs / 1000}s`;
  const limit = new AbortController();
  const timer = clock.timer(timeoutMs, () => limit.abort(new Error("context deadline exceeded")));
  const signal = AbortSignal.any([options.signal, limit.signal]);
  const deadline = clock.monotonic() + timeoutMs;
  let session: ClientHttp2Session | undefined;
  try {
    session = await dial(address, options, signal);
    const response = await callCheck(
      session,
      address,
      action.service ?? "",
      options,
      deadline - clock.monotonic(),
      signal,
    );
    return toResult(response);
  } catch (error) {
    options.signal.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    if (session === undefined) {
      return { outcome: "failure", output: `timeout: failed to connect service "${address}" within ${within}: ${why}` };
    }
    if (limit.signal.aborted) {
      return { outcome: "failure", output: `timeout: health rpc did not complete within ${within}` };
    }
    return toResult({ code: "UNAVAILABLE", message: why, status: 0 });
  } finally {
    timer.cancel();
    session?.destroy();
  }
}

/** Tries until a server sends its HTTP/2 settings, or the signal aborts. */
async function dial(address: string, { clock }: NetworkProbeOptions, signal: AbortSignal): Promise<ClientHttp2Session> {
  for (;;) {
    const session = await waitForSettings(connect(`http://${address}`), signal);
    if (session !== undefined) return session;
    await clock.sleep(RECONNECT_MS, signal);
  }
}

/** Resolves with undefined if the connection fails; rejects if the signal aborts. */
function waitForSettings(session: ClientHttp2Session, signal: AbortSignal): Promise<ClientHttp2Session | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<ClientHttp2Session | undefined>();
  const abort = (): void => {
    session.destroy();
    reject(signal.reason as Error);
  };
  session.on("error", () => resolve(undefined));
  session.once("close", () => resolve(undefined));
  session.once("remoteSettings", () => resolve(session));
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  return promise.finally(() => signal.removeEventListener("abort", abort));
}

interface HealthResponse {
  /** gRPC's name of the status code. */
  readonly code: string;
  readonly message: string;
  /** Serving status, if the code is `OK`. */
  readonly status: number;
}

async function callCheck(
  session: ClientHttp2Session,
  address: string,
  service: string,
  { userAgent }: NetworkProbeOptions,
  leftMs: number,
  signal: AbortSignal,
): Promise<HealthResponse> {
  const stream = session.request(
    {
      ":method": "POST",
      ":scheme": "http",
      ":path": PATH,
      ":authority": address,
      "content-type": "application/grpc",
      "user-agent": `${userAgent} ${GRPC_CLIENT}`,
      te: "trailers",
      "grpc-accept-encoding": "gzip",
      "grpc-timeout": `${Math.max(1, Math.floor(leftMs * 1000))}u`,
    },
    { signal },
  );
  let headers: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  stream.on("response", (received) => {
    headers = received;
  });
  stream.on("trailers", (received) => {
    trailers = received;
  });
  const body = Buffer.from(encodeProtobuf(healthCheckRequest, { service }));
  stream.end(Buffer.concat([makeMessagePrefix(body.length), body]));
  let received = Buffer.alloc(0);
  for await (const chunk of stream) received = Buffer.concat([received, chunk as Buffer]).subarray(0, OUTPUT_BYTES_MAX);
  return parseResponse(headers, trailers, received);
}

/** The prefix of a message: a byte for compression, and the length. */
function makeMessagePrefix(length: number): Buffer {
  const start = Buffer.alloc(5);
  start.writeUInt32BE(length, 1);
  return start;
}

function parseResponse(headers: IncomingHttpHeaders, trailers: IncomingHttpHeaders, body: Buffer): HealthResponse {
  const number = trailers["grpc-status"] ?? headers["grpc-status"];
  const http = headers[":status"];
  if (number === undefined) return { code: httpStatusToCode(http), message: describeUnexpected(headers), status: 0 };
  const code = GRPC_CODES[Number(number)] ?? "UNKNOWN";
  const text = String(trailers["grpc-message"] ?? headers["grpc-message"] ?? "");
  return { code, message: decodeMessage(text), status: code === "OK" ? parseStatus(body) : 0 };
}

function parseStatus(body: Buffer): number {
  const content = body.subarray(5, 5 + (body.length < 5 ? 0 : body.readUInt32BE(1)));
  const plain = body[0] === 1 ? gunzipSync(content, { maxOutputLength: OUTPUT_BYTES_MAX }) : content;
  const { status = 0 } = decodeProtobuf(healthCheckResponse, plain) as { readonly status?: number };
  return status;
}

/** gRPC's mapping of HTTP status codes for a response without gRPC status. */
function httpStatusToCode(http: unknown): string {
  const statuses: Readonly<Record<string, string>> = {
    400: "INTERNAL",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "UNIMPLEMENTED",
    429: "UNAVAILABLE",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "UNAVAILABLE",
  };
  return statuses[String(http)] ?? "UNKNOWN";
}

function describeUnexpected(headers: IncomingHttpHeaders): string {
  const type = headers["content-type"];
  const problem =
    type === undefined ? "missing HTTP content-type" : `received unexpected content-type ${JSON.stringify(type)}`;
  return `unexpected HTTP status code received from server: ${headers[":status"]}; malformed header: ${problem}`;
}

function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function toResult({ code, message: text, status }: HealthResponse): ProbeResult {
  if (code === "OK") {
    if (status === SERVING) return { outcome: "success", output: "service healthy" };
    const name = servingStatuses[status] ?? String(status);
    return { outcome: "failure", output: `service unhealthy (responded with "${name}")` };
  }
  if (code === "UNIMPLEMENTED") {
    const output = `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${text}`;
    return { outcome: "failure", output };
  }
  const output = `error: health rpc probe failed: rpc error: code = ${toGoCode(code)} desc = ${text}`;
  return { outcome: "failure", output };
}
