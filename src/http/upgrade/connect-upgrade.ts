/** The client's side of a request that switches protocols (RFC 9110, section 7.8). */
import { type ClientRequest, type Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { type Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { systemClock } from "../../std/time/clock.ts";
import type { ResponseHeaders } from "../message.ts";
import { toOutgoingHeaders } from "../message.ts";

export interface UpgradeRequest {
  readonly method: string;
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  /** Percent-encoded, with the query. */
  readonly path: string;
  /** Without `connection`; each value of an array is a header of its own. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** The connections with their TLS options; one connection without verification when absent. */
  readonly agent?: HttpAgent | HttpsAgent | undefined;
  readonly signal: AbortSignal;
  /** The switched connection closes when no byte passes for this long; 0 or absent: never. */
  readonly idleMs?: number | undefined;
  /** The switched connection closes after this. */
  readonly lifetimeMs?: number | undefined;
}

/** The server switched protocols: the connection belongs to the caller, who closes it. */
export interface SwitchedConnection {
  readonly status: 101;
  readonly headers: ResponseHeaders;
  readonly socket: Duplex;
}

/** The server answered without switching protocols. */
export interface UpgradeRefusal {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Until the connection is open, with TLS. */
const CONNECT_MS_MAX = 30_000;

/**
 * Without `isResponse`, no response arrived, and the message is Go's:
 * `dial tcp 10.0.0.1:10250: connect: connection refused`. With it, the response was neither a 101 nor an error.
 */
export class UpgradeError extends Error {
  override readonly name = "UpgradeError";
  readonly isResponse: boolean;

  constructor(message: string, options: { readonly isResponse: boolean; readonly cause?: unknown }) {
    super(message, { cause: options.cause });
    this.isResponse = options.isResponse;
  }
}

/** Rejects with an `UpgradeError` when no response arrives, or with the signal's reason. */
export async function connectUpgrade(request: UpgradeRequest): Promise<SwitchedConnection | UpgradeRefusal> {
  const { promise, resolve, reject } = Promise.withResolvers<SwitchedConnection | UpgradeRefusal>();
  const outgoing = open(request);
  limitConnectTime(outgoing);
  outgoing.on("error", reject);
  outgoing.on("response", (response) => {
    resolve({ status: response.statusCode ?? 502, headers: separateHeaders(response), body: response });
  });
  outgoing.on("upgrade", (response, socket: Duplex, head) => {
    if (head.length > 0) socket.unshift(head);
    // Readers and writers get the error; without a listener it would end the process.
    socket.on("error", () => {});
    keepReadable(socket);
    const { idleMs = 0, lifetimeMs } = request;
    if (lifetimeMs !== undefined) {
      const timer = systemClock.timer(lifetimeMs, () => socket.destroy());
      socket.once("close", () => timer.cancel());
    }
    if (idleMs > 0) (socket as Socket).setTimeout(idleMs, () => socket.destroy());
    resolve({ status: 101, headers: separateHeaders(response), socket });
  });
  outgoing.end();
  try {
    return await promise;
  } catch (error) {
    request.signal.throwIfAborted();
    const { host, port } = request;
    throw new UpgradeError(describeConnectionError(error, host, port), { isResponse: false, cause: error });
  }
}

function open({ method, secure, host, port, path, headers, agent, signal }: UpgradeRequest): ClientRequest {
  const options = {
    method,
    host,
    port,
    path,
    headers: { ...toOutgoingHeaders(headers), connection: "Upgrade" },
    signal,
  };
  if (!secure) return httpRequest({ ...options, ...(agent === undefined ? { agent: false } : { agent }) });
  return httpsRequest({
    ...options,
    ...(agent === undefined ? { agent: false, rejectUnauthorized: false } : { agent: agent as HttpsAgent }),
  });
}

/**
 * A server may close a connection that it has not read to the end, as containerd does with the input that a command has
 * not read. The kernel then resets the connection, and Node.js would destroy the socket with what the server has sent
 * last: the exit code. Here failed writes are ignored, and a reset is the end of what can be read.
 */
function keepReadable(socket: Duplex): void {
  const write = socket._write.bind(socket);
  const ignoreClosed =
    (done: (error?: Error | null) => void) =>
    (error?: Error | null): void =>
      done(isClosedByPeer(error) ? null : error);
  socket._write = (chunk, encoding, done) => write(chunk, encoding, ignoreClosed(done));
  const writev = socket._writev?.bind(socket);
  if (writev !== undefined) socket._writev = (chunks, done) => writev(chunks, ignoreClosed(done));
  const destroy = socket.destroy.bind(socket);
  socket.destroy = (error) => {
    if (!isClosedByPeer(error) || socket.readableEnded) return destroy(error);
    socket.push(null);
    return socket;
  };
}

function isClosedByPeer(error: Error | null | undefined): boolean {
  return CLOSED_CODES.has((error as NodeJS.ErrnoException | null | undefined)?.code ?? "");
}

const CLOSED_CODES: ReadonlySet<string> = new Set(["EPIPE", "ECONNRESET"]);

function limitConnectTime(outgoing: ClientRequest): void {
  outgoing.once("socket", (socket) => {
    if (!socket.connecting) return;
    const timer = systemClock.timer(CONNECT_MS_MAX, () => outgoing.destroy(new Error("i/o timeout")));
    const stop = (): void => timer.cancel();
    socket.once("connect", stop);
    socket.once("close", stop);
  });
}

/** Headers as received: repeated ones stay separate. */
function separateHeaders({ headersDistinct }: IncomingMessage): ResponseHeaders {
  return Object.fromEntries(
    Object.entries(headersDistinct).flatMap(([name, values]) => {
      if (values === undefined) return [];
      return [[name, values.length === 1 ? values[0]! : values]];
    }),
  );
}

/** Go's text for the error of a connection. */
export function describeConnectionError(error: unknown, host: string, port: number): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const at = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  if (code === "ENOTFOUND") return `dial tcp: lookup ${host}: no such host`;
  if (code === "ECONNRESET") return "EOF";
  if (code === "EPROTO" && message.includes("wrong version number")) {
    return "tls: first record does not look like a TLS handshake";
  }
  const reason = code === undefined ? undefined : REASONS[code];
  return reason === undefined ? message : `dial tcp ${at}: ${reason}`;
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused",
  EHOSTUNREACH: "connect: no route to host",
  ENETUNREACH: "connect: network is unreachable",
  ETIMEDOUT: "i/o timeout",
};
