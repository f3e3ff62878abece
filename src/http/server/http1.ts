/** HTTP/1.1: calls the handler with the requests of node:http. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { joinHeaders } from "../join-headers.ts";
import type { HttpRequest, HttpResponse, Peer } from "../message.ts";
import { statusResponse, textResponse } from "../respond.ts";
import {
  callHandler,
  endsConnection,
  IncomingRequest,
  logFailure,
  mayHaveBody,
  outgoingHeaders,
  type ServerContext,
  stallTimeout,
} from "./exchange.ts";
import { Pipeline } from "./http1-connection/pipeline.ts";
import { type ClientError, parseUnknownMethod } from "./http1-connection/unknown-method.ts";
import { discardUnread } from "./http1-connection/unread-body.ts";
import { JoinedMessage } from "./joined-message.ts";
import { parseTarget } from "./request-target.ts";
import { createLastResponse, mayUpgrade, switchProtocols } from "./upgrade.ts";
import { discardBody, isStreamed, writeBody } from "./write-body.ts";

/** A server for sockets passed to it, or for plain connections of its own. */
export function createHttp1Server(context: ServerContext, peerOf: (socket: Duplex) => Peer): Server {
  const { limits } = context;
  const server = createServer({
    IncomingMessage: JoinedMessage,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerTimeoutMs,
    connectionsCheckingInterval: Math.max(100, Math.min(10_000, limits.headerTimeoutMs / 2)),
    keepAliveTimeout: limits.idleTimeoutMs,
    // The reader of a body limits its time: an upload or a watch has no natural end.
    requestTimeout: 0,
    insecureHTTPParser: false,
    // Checked by `findViolation`, so that the response is like the others.
    requireHostHeader: false,
    ...(context.upgrades ? { shouldUpgradeCallback: mayUpgrade } : {}),
  });
  const pipeline = new Pipeline();
  const rejected = new WeakSet<Duplex>();
  const responses = new WeakMap<Duplex, ServerResponse>();
  /** The last request of which the headers have been read. */
  const latest = new WeakMap<Duplex, IncomingMessage>();
  server.on("request", (incoming, outgoing) => {
    const { socket } = incoming;
    incoming.on("error", () => {});
    outgoing.on("error", () => {});
    // node:http reads on from a connection that is about to be closed.
    if (rejected.has(socket)) return;
    latest.set(socket, incoming);
    const violation = findViolation(incoming);
    if (violation !== undefined) rejected.add(socket);
    pipeline.add(socket, async () => {
      context.inFlight.enter();
      responses.set(socket, outgoing);
      try {
        if (violation !== undefined) await sendResponse(context, incoming, outgoing, malformedResponse(violation));
        else await handleExchange(context, peerOf(socket), incoming, outgoing);
      } catch {
        outgoing.destroy();
      } finally {
        context.inFlight.leave();
      }
    });
  });
  if (context.upgrades) {
    server.on("upgrade", (incoming, socket, head) => {
      socket.on("error", () => {});
      if (rejected.has(socket)) return;
      if (head.length > 0) socket.unshift(head);
      const violation = findViolation(incoming);
      pipeline.add(socket, async () => {
        context.inFlight.enter();
        let leave = (): void => context.inFlight.leave();
        const onSwitch = (): void => {
          context.inFlight.enterSwitched();
          leave = () => context.inFlight.leaveSwitched();
        };
        try {
          if (violation === undefined) await handleUpgrade(context, peerOf(socket), incoming, socket, onSwitch);
          else await sendLast(context, incoming, socket, malformedResponse(violation));
        } catch {
          socket.destroy();
        } finally {
          leave();
        }
      });
    });
  }
  server.on("clientError", (error: ClientError, socket) => {
    const response = responses.get(socket);
    // No second response can start in the middle of one.
    if (response?.headersSent === true && !response.writableFinished) socket.destroy();
    else if (latest.get(socket)?.complete === false) rejectMalformed(error, socket);
    // After the requests before it: some clients send the body of a DELETE without its length.
    else {
      const incoming = parseUnknownMethod(error, socket, limits.headerBytes);
      const isRequest = incoming !== undefined && findViolation(incoming) === undefined;
      pipeline.add(socket, async () => {
        if (isRequest) await handleLast(context, peerOf(socket), incoming, socket);
        else rejectMalformed(error, socket);
      });
    }
  });
  server.on("connect", (incoming, socket) => {
    socket.on("error", () => {});
    if (findViolation(incoming) !== undefined || rejected.has(socket)) socket.destroy();
    else pipeline.add(socket, () => handleLast(context, peerOf(socket), incoming, socket));
  });
  return server;
}

/** A request after which node:http reads nothing from the connection. Never rejects. */
async function handleLast(context: ServerContext, peer: Peer, incoming: IncomingMessage, socket: Duplex) {
  context.inFlight.enter();
  try {
    const headers = { plain: joinHeaders(incoming.headers), raw: incoming.rawHeaders };
    const request = new IncomingRequest(incoming.method ?? "", parseTarget(incoming.url)!, headers, peer, undefined);
    socket.once("close", () => request.abort());
    await sendLast(context, incoming, socket, await callHandler(context, request));
  } catch {
    socket.destroy();
  } finally {
    context.inFlight.leave();
  }
}

/** What is wrong with a request that node:http accepts, as Go says it: nothing of its target. Undefined: nothing is. */
function findViolation({ url, httpVersion, rawHeaders }: IncomingMessage): string | undefined {
  if (parseTarget(url) === undefined) return "";
  let hostHeaders = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) if (/^host$/i.test(rawHeaders[index]!)) hostHeaders++;
  // HTTP/1.0 has no Host. With two, a proxy may use the other one (request smuggling).
  const isValid = hostHeaders === 1 || (hostHeaders === 0 && httpVersion === "1.0");
  return isValid ? undefined : `: ${hostHeaders === 0 ? "missing required Host header" : "too many Host headers"}`;
}

function malformedResponse(violation: string): HttpResponse {
  return textResponse(400, `400 Bad Request${violation}`, { connection: "close" });
}

async function handleExchange(
  context: ServerContext,
  peer: Peer,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const target = parseTarget(incoming.url)!;
  const method = incoming.method ?? "GET";
  const headers = { plain: joinHeaders(incoming.headers), raw: incoming.rawHeaders };
  const request = new IncomingRequest(method, target, headers, peer, incoming);
  const onClose = (): void => request.abort();
  outgoing.once("close", onClose);
  const response = await callHandler(context, request);
  try {
    await sendResponse(context, incoming, outgoing, response);
  } catch (error) {
    await respondWithError(context, request, incoming, outgoing, error);
  } finally {
    request.markWritten();
  }
  await waitForEnd(outgoing);
  outgoing.off("close", onClose);
}

/** The handler switches the protocol, or responds for the last time on the connection. */
async function handleUpgrade(
  context: ServerContext,
  peer: Peer,
  incoming: IncomingMessage,
  socket: Duplex,
  onSwitch: () => void,
): Promise<void> {
  const headers = { plain: joinHeaders(incoming.headers), raw: incoming.rawHeaders };
  const target = parseTarget(incoming.url)!;
  const request = new IncomingRequest(incoming.method ?? "GET", target, headers, peer, socket, true);
  socket.once("close", () => request.abort());
  const response = await callHandler(context, request);
  if (response.status !== 101) return await sendLast(context, incoming, socket, response);
  onSwitch();
  await switchProtocols(context, request, socket, response);
}

async function sendLast(context: ServerContext, incoming: IncomingMessage, socket: Duplex, response: HttpResponse) {
  const outgoing = createLastResponse(incoming, socket);
  await sendResponse(context, incoming, outgoing, {
    ...response,
    headers: { ...response.headers, connection: "close" },
  });
  await waitForEnd(outgoing);
}

async function respondWithError(
  context: ServerContext,
  request: HttpRequest,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  error: unknown,
): Promise<void> {
  if (outgoing.destroyed) return;
  if (!request.signal.aborted) logFailure(context, request, error);
  // A partial response cannot be taken back: only a broken connection marks it as incomplete.
  if (outgoing.headersSent) outgoing.destroy();
  else {
    const response = statusResponse(500, "InternalError", "Internal error occurred: the response could not be written");
    await sendResponse(context, incoming, outgoing, response);
  }
}

async function sendResponse(
  context: ServerContext,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  response: HttpResponse,
): Promise<void> {
  if (outgoing.destroyed) {
    discardBody(response.body);
    return;
  }
  const { draining } = context.inFlight;
  // The body of a streamed response may be made of the request's.
  const isOver = !isStreamed(response.body) && !endsConnection(response);
  if (!draining && !incoming.complete && isOver) await discardUnread(incoming, context.clock);
  try {
    const headers = outgoingHeaders(response);
    // Before the connection can be reused, an unread body would have to be read to its end.
    if (context.inFlight.draining || !incoming.complete || endsConnection(response)) headers.connection = "close";
    outgoing.writeHead(response.status, headers);
  } catch (error) {
    discardBody(response.body);
    throw error;
  }
  if (incoming.method === "HEAD" || !mayHaveBody(response.status)) {
    discardBody(response.body);
    outgoing.end();
    return;
  }
  if (isStreamed(response.body)) outgoing.flushHeaders();
  await writeBody(outgoing, response.body, stallTimeout(context));
}

function waitForEnd(outgoing: ServerResponse): Promise<void> {
  if (outgoing.destroyed || outgoing.writableFinished) return Promise.resolve();
  return new Promise((resolve) => {
    outgoing.once("finish", resolve);
    outgoing.once("close", resolve);
  });
}

/** Bytes that are no request. Writes the response by hand, since node:http has no request to respond to. */
function rejectMalformed(error: ClientError, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [statusLine, message] = errorResponses[error.code ?? ""] ?? ["400 Bad Request", "400 Bad Request"];
  endWithResponse(socket, statusLine, "Content-Type: text/plain; charset=utf-8", message);
}

function endWithResponse(socket: Duplex, statusLine: string, headers: string, body: string): void {
  const lines = [`HTTP/1.1 ${statusLine}`, "Connection: close", headers, `Content-Length: ${Buffer.byteLength(body)}`];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}

const errorResponses: Readonly<Record<string, readonly [string, string]>> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "431 Request Header Fields Too Large"],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "the request's headers took too long"],
};
