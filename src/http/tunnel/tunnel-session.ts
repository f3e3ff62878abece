/**
 * HTTP/2 with reversed roles (RFC 9113): the side that opened the connection serves CONNECT streams, each of which
 * carries one connection in the other direction.
 */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type Http2Session,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { connect as connectTcp } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock, Timer } from "../../std/time/clock.ts";

/** Of the `upgrade` header. */
export const TUNNEL_PROTOCOL = "tunnel.svc.io/v1";
/**
 * Connections at a time; further ones are refused. The API server's limit is half of it: Node.js counts a stream for a
 * while after its end.
 */
export const TUNNEL_STREAMS_MAX = 512;
/** Bytes that the sender of one stream may be ahead of its reader; a stream that is not read stops at this. */
export const STREAM_WINDOW_BYTES = 512 * 1024;
/** A ping after this much time, and the time for its answer; a connection without an answer is closed. */
export const PING_INTERVAL_MS = 10_000;
export const PING_TIMEOUT_MS = 10_000;
/** Time for the other side to open a connection. */
const DIAL_MS_MAX = 30_000;
/** Memory of one session, in MB: beyond it Node.js refuses streams. */
const SESSION_MEMORY_MAX = 64;
/** Has the reason why the serving side opened no connection. */
const ERROR_HEADER = "tunnel-error";
const ERROR_CHARACTERS_MAX = 256;

/** Opens streams over the connection, which the session owns. */
export function openTunnelClient(socket: Duplex): ClientHttp2Session {
  const session = connect("http://tunnel", {
    createConnection: () => socket,
    maxSessionMemory: SESSION_MEMORY_MAX,
    settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
  });
  // Callers see the session close; without a listener an error would end the process.
  session.on("error", () => {});
  return session;
}

/**
 * Opens one connection. Rejects with the reason of the serving side, when the session closes, and after 30 s. The
 * caller owns the stream.
 */
export function dialThroughTunnel(session: ClientHttp2Session, clock: Pick<Clock, "timer">): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const stream: ClientHttp2Stream = session.request({ ":method": "CONNECT", ":authority": "agent" });
    let failure = new Error("the tunnel closed");
    const timer = clock.timer(DIAL_MS_MAX, () => {
      failure = new Error("i/o timeout");
      stream.destroy();
    });
    // Later errors go to the reader or writer of the stream.
    stream.on("error", (error) => {
      failure = error;
    });
    stream.once("close", () => {
      timer.cancel();
      reject(failure);
    });
    stream.once("response", (headers) => {
      timer.cancel();
      if (headers[":status"] === 200) return resolve(stream);
      const text = String(headers[ERROR_HEADER] ?? `status ${headers[":status"]}`).slice(0, ERROR_CHARACTERS_MAX);
      failure = new Error(`agent refused the connection: ${text}`);
      return stream.destroy();
    });
  });
}

export interface TunnelTarget {
  readonly host: string;
  readonly port: number;
}

export interface TunnelServerOptions {
  /** Where the connection of each stream goes. */
  readonly target: TunnelTarget;
  /** Called with 1 for each stream that opens, with -1 when it closes. */
  readonly countStreams: (change: 1 | -1) => void;
}

/** Connects each stream of the other side to the target. The session owns the connection. */
export function openTunnelServer(socket: Duplex, { target, countStreams }: TunnelServerOptions): ServerHttp2Session {
  const session = performServerHandshake(socket, {
    maxSessionMemory: SESSION_MEMORY_MAX,
    settings: { maxConcurrentStreams: TUNNEL_STREAMS_MAX, initialWindowSize: STREAM_WINDOW_BYTES },
  });
  session.on("error", () => {});
  session.on("stream", (stream, headers) => {
    countStreams(1);
    stream.once("close", () => countStreams(-1));
    stream.on("error", () => {});
    if (headers[":method"] === "CONNECT") connectStream(stream, target);
    else refuse(stream, 405, "only CONNECT is served");
  });
  return session;
}

function connectStream(stream: ServerHttp2Stream, target: TunnelTarget): void {
  // Half-open: a client that has ended its side still reads the rest.
  const socket = connectTcp({ ...target, noDelay: true, allowHalfOpen: true });
  let isConnected = false;
  stream.once("close", () => socket.destroy());
  const end = (): void => void stream.destroy();
  socket.once("close", () => {
    // The last bytes may still wait for the reader.
    if (stream.writableFinished) end();
    else stream.once("finish", end);
  });
  socket.on("error", (error) => {
    if (isConnected) end();
    else refuse(stream, 502, error.message);
  });
  socket.once("connect", () => {
    isConnected = true;
    if (stream.destroyed) return void socket.destroy();
    stream.respond({ ":status": 200 });
    socket.pipe(stream);
    stream.pipe(socket);
  });
}

function refuse(stream: ServerHttp2Stream, status: number, reason: string): void {
  if (stream.destroyed || stream.headersSent) return;
  const text = reason.replace(/[^\x20-\x7e]/g, "?").slice(0, ERROR_CHARACTERS_MAX);
  stream.respond({ ":status": status, [ERROR_HEADER]: text }, { endStream: true });
}

/** Closes a session whose other side does not answer. Resolves with the reason when the session is closed. */
export function keepTunnelAlive(session: Http2Session, clock: Pick<Clock, "timer">): Promise<string> {
  return new Promise((resolve) => {
    let timer: Timer | undefined;
    let reason = "the connection was closed";
    const schedule = (): void => {
      timer = clock.timer(PING_INTERVAL_MS, () => {
        timer = clock.timer(PING_TIMEOUT_MS, () => {
          session.destroy(new Error(`no answer to a ping within ${PING_TIMEOUT_MS / 1000} s`));
        });
        const isSent = session.ping(() => {
          timer?.cancel();
          if (!session.destroyed) schedule();
        });
        if (!isSent) session.destroy(new Error("no ping can be sent"));
      });
    };
    session.on("error", (error) => {
      reason = error.message;
    });
    session.once("close", () => {
      timer?.cancel();
      resolve(reason);
    });
    if (session.destroyed) resolve(reason);
    else schedule();
  });
}
