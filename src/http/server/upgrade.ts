/**
 * Requests that switch an HTTP/1.1 connection to another protocol (RFC 9110, section 7.8): WebSocket, or what a proxied
 * server speaks. The handler's body is what the connection sends after a 101; the request's body is what it receives.
 */
import { type IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, Readable } from "node:stream";
import type { HttpResponse } from "../message.ts";
import { copyConnection } from "../upgrade/forward-upgrade.ts";
import { type IncomingRequest, logFailure, outgoingHeaders, type ServerContext, stallTimeout } from "./exchange.ts";
import { discardBody, writeBody } from "./write-body.ts";

/** The client has this long to close its side after the last byte. */
const LINGER_MS = 2000;

/** Whether a request may switch protocols. One with a body, or for HTTP/2, is an ordinary request. */
export function mayUpgrade({ headers }: IncomingMessage): boolean {
  const { upgrade, "content-length": length = "0", "transfer-encoding": encoding } = headers;
  return upgrade !== undefined && !/^h2c?$/i.test(upgrade) && length === "0" && encoding === undefined;
}

/** A response for a request whose connection node:http has given up. The connection ends with it. */
export function createLastResponse(incoming: IncomingMessage, socket: Duplex): ServerResponse {
  const outgoing = new ServerResponse(incoming);
  outgoing.shouldKeepAlive = false;
  // node:http declares the type of TCP connections; others work as well.
  outgoing.assignSocket(socket as IncomingMessage["socket"]);
  outgoing.on("error", () => {});
  outgoing.once("finish", () => {
    outgoing.detachSocket(socket as IncomingMessage["socket"]);
    socket.end();
    socket.resume();
  });
  return outgoing;
}

/** Sends a 101 and then the body. Resolves when the connection is closed. */
export async function switchProtocols(
  context: ServerContext,
  request: IncomingRequest,
  socket: Duplex,
  response: HttpResponse,
): Promise<void> {
  const closed = new Promise<void>((resolve) => socket.once("close", resolve));
  if (socket.destroyed) {
    discardBody(response.body);
    return;
  }
  try {
    socket.write(switchingHead(response));
    if (response.body instanceof Readable) await pipeStream(response.body, socket);
    else await writeBody(socket, response.body, stallTimeout(context));
  } catch (error) {
    if (!request.signal.aborted) logFailure(context, request, error);
    socket.destroy();
  }
  await waitUntilSent(socket);
  const timer = context.clock.timer(LINGER_MS, () => socket.destroy());
  socket.resume();
  if (!socket.destroyed) await closed;
  timer.cancel();
}

/** A client that reads slowly gets the last bytes: those of a command's exit code. */
function waitUntilSent(socket: Duplex): Promise<void> {
  if (socket.destroyed || socket.writableFinished) return Promise.resolve();
  return new Promise((resolve) => {
    socket.once("finish", resolve);
    socket.once("close", resolve);
  });
}

/**
 * Copies a connection to another one and ends it. There is no limit of time: a client that does not read may be a
 * stopped terminal. Node.js's `pipeline` is no faster, and would destroy the source without an error.
 */
async function pipeStream(source: Readable, sink: Duplex): Promise<void> {
  const destroy = (): void => void source.destroy();
  sink.once("close", destroy);
  try {
    if (sink.destroyed) destroy();
    else await copyConnection(source, sink);
  } finally {
    sink.off("close", destroy);
    // Also when the source is destroyed before its end.
    sink.end();
  }
}

function switchingHead(response: HttpResponse): string {
  const protocol = response.headers.upgrade;
  if (typeof protocol !== "string") throw new Error("Cannot switch protocols: the response has no protocol");
  const headers = Object.entries(outgoingHeaders(response)).flatMap(([name, value]) =>
    [value].flat().map((each) => `${name}: ${each}\r\n`),
  );
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${protocol}\r\nConnection: Upgrade\r\n${headers.join("")}\r\n`;
}
