/** The server's side of the opening handshake of WebSocket (RFC 6455, section 4.2). */
import { createHash } from "node:crypto";
import type { HttpRequest, ResponseHeaders } from "../message.ts";

const ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export function isWebSocketRequest({ headers, upgradable }: HttpRequest): boolean {
  return upgradable === true && headers.upgrade?.toLowerCase() === "websocket";
}

/** The subprotocols that the client offers. */
export function offeredProtocols({ headers }: HttpRequest): readonly string[] {
  const names = (headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
  return names.filter((name) => name !== "");
}

/** The headers of a 101 for the client's `sec-websocket-key`. */
export function acceptHeaders(key: string, protocol: string | undefined): ResponseHeaders & { upgrade: string } {
  const accept = createHash("sha1").update(`${key}${ACCEPT_GUID}`).digest("base64");
  return {
    upgrade: "websocket",
    "sec-websocket-accept": accept,
    ...(protocol === undefined ? {} : { "sec-websocket-protocol": protocol }),
  };
}
