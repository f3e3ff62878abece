/**
 * Several HTTP/1.1 connections over one TLS connection, each a CONNECT stream of HTTP/2 (RFC 9113, section 8.5): an end
 * of TLS takes 55 KiB in Node.js.
 */
import { type ClientHttp2Session, connect, performServerHandshake, type ServerHttp2Session } from "node:http2";
import type { Duplex } from "node:stream";

/** The value of the `upgrade` header. */
export const SHARED_PROTOCOL = "connections.svc.io/v1";
/** The path of the request that switches to it. */
export const SHARED_PATH = "/connections";
export const SHARED_STREAMS_MAX = 4096;
/** Bytes that the sender of one stream may be ahead of its reader. */
const STREAM_WINDOW_BYTES = 256 * 1024;
/** Memory of one session, in MB: beyond it Node.js refuses streams. */
const SESSION_MEMORY_MAX = 256;

/** Opens connections with `dialThroughTunnel`. The session owns the socket. */
export function openSharedClient(socket: Duplex): ClientHttp2Session {
  const session = connect("http://shared", {
    createConnection: () => socket,
    maxSessionMemory: SESSION_MEMORY_MAX,
    settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
  });
  // Callers see the session close; without a listener an error would end the process.
  session.on("error", () => {});
  return session;
}

/** Calls `accept` for each connection of the other side, which `accept` owns. The session owns the socket. */
export function serveSharedConnection(socket: Duplex, accept: (connection: Duplex) => void): ServerHttp2Session {
  const session = performServerHandshake(socket, {
    maxSessionMemory: SESSION_MEMORY_MAX,
    settings: { maxConcurrentStreams: SHARED_STREAMS_MAX, initialWindowSize: STREAM_WINDOW_BYTES },
  });
  session.on("error", () => {});
  session.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    if (headers[":method"] === "CONNECT") {
      stream.respond({ ":status": 200 });
      accept(stream);
    } else stream.respond({ ":status": 405 }, { endStream: true });
  });
  return session;
}
