/** Forwards a request that switches protocols to another server; after that, bytes pass unchanged both ways. */
import type { Duplex, Readable, Writable } from "node:stream";
import { copiedBytes } from "../../std/memory/collect-copied.ts";
import { type HttpRequest, type HttpResponse, headerValues, type ResponseHeaders } from "../message.ts";
import { connectUpgrade, UpgradeError, type UpgradeRequest } from "./connect-upgrade.ts";
import { readChunks } from "./read-chunks.ts";

/** Headers of the connection, and the client's credentials for this server. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "http2-settings", "authorization", "expect"],
]);

/**
 * Bytes that may wait for a sink before its source pauses, besides the last chunk. With a pause after each chunk, of 64
 * KiB, a fast connection takes a quarter more CPU time.
 */
const WAITING_BYTES_MAX = 256 * 1024;

/** Checks what the client sends before it is forwarded. */
export interface InputFilter extends Disposable {
  /** Returns the bytes that may pass. A throw or a rejection closes the connection. */
  readonly take: (chunk: Uint8Array) => Uint8Array | Promise<Uint8Array>;
}

/**
 * Returns the server's refusal as it is. Throws an `UpgradeError` when the server cannot be reached, or responds
 * neither with a new protocol nor with an error.
 */
export async function forwardUpgrade(
  request: HttpRequest,
  to: UpgradeRequest,
  filter?: InputFilter,
): Promise<HttpResponse> {
  const result = await connectUpgrade(to);
  if (!("socket" in result)) {
    if (result.status < 400) {
      throw new UpgradeError(`invalid upgrade response: status code ${result.status}`, { isResponse: true });
    }
    const { status, headers, body } = result;
    return { status, headers: forwardedResponseHeaders(headers), body, asReceived: true };
  }
  const { headers, socket } = result;
  if (request.upgradable !== true) {
    socket.destroy();
    throw new UpgradeError("unable to upgrade: the connection cannot switch protocols", { isResponse: true });
  }
  void sendReceived(request, socket, to.signal, filter);
  const protocol = headers.upgrade ?? request.headers.upgrade ?? "";
  return { status: 101, headers: { ...forwardedResponseHeaders(headers), upgrade: protocol }, body: socket };
}

/** Sends what the client sends. Closes the connection when the client ends its side, as kube-apiserver and kubelet. */
async function sendReceived(
  request: HttpRequest,
  socket: Duplex,
  signal: AbortSignal,
  filter: InputFilter | undefined,
): Promise<void> {
  const close = (): void => void socket.destroy();
  signal.addEventListener("abort", close, { once: true });
  socket.once("close", () => signal.removeEventListener("abort", close));
  try {
    const source = request.connection;
    if (filter !== undefined) await copyFiltered(source ?? request.body, socket, filter);
    else if (source === undefined) await copyStream(request.body, socket);
    else await copyConnection(source, socket);
  } catch {
    socket.destroy();
    return;
  } finally {
    filter?.[Symbol.dispose]();
  }
  socket.end(close);
}

async function copyFiltered(source: AsyncIterable<Uint8Array>, sink: Writable, filter: InputFilter): Promise<void> {
  const write = (bytes: Uint8Array): boolean | Promise<boolean> => {
    if (sink.destroyed || sink.writableEnded) return false;
    copiedBytes.add(bytes.length);
    return bytes.length === 0 || writeAhead(sink, bytes) || waitForDrain(sink).then(() => true);
  };
  await readChunks(source, (chunk) => {
    const checked = filter.take(chunk);
    return checked instanceof Promise ? checked.then(write) : write(checked);
  });
}

/** Writes all chunks with back-pressure. Resolves early when the sink closes. */
export async function copyStream(source: AsyncIterable<Uint8Array>, sink: Writable): Promise<void> {
  for await (const chunk of source) {
    if (sink.destroyed || sink.writableEnded) return;
    copiedBytes.add(chunk.length);
    if (!sink.write(chunk)) await waitForDrain(sink);
  }
}

/**
 * The same for the bytes of a connection. No iterator keeps its last chunk while nothing arrives: each chunk has a
 * buffer of 64 KiB. Rejects when the source fails.
 */
export function copyConnection(source: Readable, sink: Writable): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (error?: Error): void => {
      source.off("data", write);
      source.off("end", done);
      source.off("close", done);
      source.off("error", finish);
      sink.off("drain", resume);
      sink.off("close", done);
      if (error === undefined) resolve();
      else reject(error);
    };
    const done = (): void => finish();
    const resume = (): void => void source.resume();
    const write = (chunk: Uint8Array): void => {
      copiedBytes.add(chunk.length);
      if (sink.destroyed || sink.writableEnded) done();
      else if (!writeAhead(sink, chunk)) source.pause();
    };
    source.once("end", done);
    source.once("close", done);
    source.once("error", finish);
    sink.on("drain", resume);
    sink.once("close", done);
    source.on("data", write);
    if (sink.destroyed || source.destroyed) done();
  });
}

/** False when the next chunk must wait for the sink to drain. */
function writeAhead(sink: Writable, chunk: Uint8Array): boolean {
  return sink.write(chunk) || sink.writableLength < WAITING_BYTES_MAX;
}

/** Resolves when the sink takes more, or is closed. */
export function waitForDrain(sink: Writable): Promise<void> {
  if (sink.destroyed || !sink.writableNeedDrain) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      sink.off("drain", done);
      sink.off("close", done);
      resolve();
    };
    sink.on("drain", done);
    sink.on("close", done);
  });
}

/** The headers of a request for the next server: `upgrade` stays, and the client's address is added. */
export function upgradeRequestHeaders(request: HttpRequest): Record<string, string | readonly string[]> {
  const headers: Record<string, string | readonly string[]> = {};
  for (const name of Object.keys(request.headers)) {
    if (NOT_FORWARDED.has(name) || name.startsWith(":")) continue;
    const values = headerValues(request, name);
    headers[name] = values.length === 1 ? values[0]! : values;
  }
  const { "x-forwarded-for": previous } = request.headers;
  headers["x-forwarded-for"] = previous === undefined ? request.peer.address : `${previous}, ${request.peer.address}`;
  return headers;
}

/** Whether the client requests another protocol: Kubernetes checks `connection` only. */
export function isUpgradeRequest({ headers }: HttpRequest): boolean {
  return /\bupgrade\b/i.test(headers.connection ?? "");
}

function forwardedResponseHeaders(headers: ResponseHeaders): ResponseHeaders {
  return Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) => !NOT_FORWARDED.has(name) && name !== "upgrade" && !name.startsWith("access-control-"),
    ),
  );
}
