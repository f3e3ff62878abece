/** Logs and watches over WebSocket, for browsers. */

import { StatusError } from "../../api/status.ts";
import { isTokenProtocol } from "../../auth/authn/token/bearer-token.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { webSocketResponse } from "../../http/websocket/event-socket.ts";
import { offeredProtocols } from "../../http/websocket/handshake.ts";
import type { Format } from "./representation.ts";

/** Messages of bytes, or of text in base64. */
export interface LogProtocol {
  /** Undefined when the client offers none: binary messages. */
  readonly name: string | undefined;
  readonly base64: boolean;
}

const LOG_PROTOCOLS = ["binary.k8s.io", "base64.binary.k8s.io"];
/** The length before each frame of a protobuf stream. Messages have their own. */
const LENGTH_PREFIX_BYTES = 4;

/** Throws a 403 when the client offers other protocols only. */
export function negotiateLogProtocol(request: HttpRequest): LogProtocol {
  const offered = offeredProtocols(request).filter((name) => !isTokenProtocol(name));
  const name = offered.find((one) => LOG_PROTOCOLS.includes(one));
  if (name === undefined && offered.length > 0) {
    const supported = ["", ...LOG_PROTOCOLS].join(" ");
    const message = `requested protocol(s) are not supported: [${offered.join(" ")}]; supports [${supported}]`;
    throw new StatusError(403, "Forbidden", message);
  }
  return { name, base64: name === "base64.binary.k8s.io" };
}

/** The first message is empty, so that the client sees that the log is open. */
export function logWebSocket(
  request: HttpRequest,
  log: AsyncIterable<Uint8Array>,
  { name, base64 }: LogProtocol,
): HttpResponse {
  return webSocketResponse(request, logMessages(log, base64), { protocol: name, type: base64 ? "text" : "binary" });
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
