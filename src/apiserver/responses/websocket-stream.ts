/** Logs and watches over WebSocket, for browsers. */

import { isTokenProtocol } from "../../auth/authn/token/bearer-token.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { webSocketResponse } from "../../http/websocket/event-socket.ts";
import { offeredProtocols } from "../../http/websocket/handshake.ts";
import type { Format } from "./representation.ts";

const LOG_PROTOCOLS = ["binary.k8s.io", "base64.binary.k8s.io"];
/** The length before each frame of a protobuf stream. Messages have their own. */
const LENGTH_PREFIX_BYTES = 4;

/**
 * Messages of bytes, or of text in base64. The first is empty, so that the client sees that the log is open. A client
 * that offers other protocols only gets a 403.
 */
export async function logWebSocket(request: HttpRequest, log: AsyncIterable<Uint8Array>): Promise<HttpResponse> {
  const offered = offeredProtocols(request).filter((name) => !isTokenProtocol(name));
  const protocol = offered.find((one) => LOG_PROTOCOLS.includes(one));
  if (protocol === undefined && offered.length > 0) return await refuseUpgrade(log);
  const base64 = protocol === "base64.binary.k8s.io";
  return webSocketResponse(request, logMessages(log, base64), { protocol, type: base64 ? "text" : "binary" });
}

/** As Kubernetes' server of WebSockets: no headers and no text. */
async function refuseUpgrade(log: AsyncIterable<Uint8Array>): Promise<HttpResponse> {
  // Ends the agent's response.
  for await (const _ of log) break;
  return { status: 403, headers: {}, body: new Uint8Array(), asReceived: true };
}

async function* logMessages(log: AsyncIterable<Uint8Array>, base64: boolean): AsyncGenerator<Uint8Array> {
  yield new Uint8Array();
  for await (const chunk of log) yield base64 ? Buffer.from(Buffer.from(chunk).toString("base64")) : chunk;
}

/** One message for each event. */
export function watchWebSocket(request: HttpRequest, frames: AsyncIterable<Uint8Array>, format: Format): HttpResponse {
  const [protocol] = offeredProtocols(request).filter((name) => !isTokenProtocol(name));
  const messages = format === "protobuf" ? withoutLengths(frames) : frames;
  return webSocketResponse(request, messages, { protocol, type: format === "json" ? "text" : "binary" });
}

async function* withoutLengths(frames: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const frame of frames) yield frame.subarray(LENGTH_PREFIX_BYTES);
}
