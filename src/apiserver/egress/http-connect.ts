/**
 * Connections through an HTTP proxy with CONNECT (RFC 9110, section 9.3.6), over TCP with or without TLS, or a Unix
 * socket.
 */
import { connect as connectSocket, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Clock } from "../../std/time/clock.ts";
import type { ProxyAddress } from "./configuration.ts";

/** Bounds the proxy's response, whose end would otherwise be awaited for ever. */
const HEAD_BYTES_MAX = 1 << 20;
/** Bounds the connection to the proxy and its response together, as net/http's dialer does. */
const TIMEOUT_MS = 30_000;
const END_OF_HEAD = "\r\n\r\n";

/** Resolves with an open connection to the proxy. */
export async function connectToProxy(proxy: ProxyAddress, clock: Clock): Promise<Socket> {
  const socket = open(proxy);
  // Also while no user listens.
  socket.on("error", () => {});
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const timer = clock.timer(TIMEOUT_MS, () => reject(new Error(`dial ${addressOf(proxy)}: i/o timeout`)));
  const onError = (error: Error): void => reject(describeDialError(error, proxy));
  socket.once("error", onError);
  socket.once(proxy.kind === "tcp" && proxy.tls !== undefined ? "secureConnect" : "connect", () => resolve(socket));
  try {
    return await promise;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    timer.cancel();
    socket.off("error", onError);
  }
}

function open(proxy: ProxyAddress): Socket {
  if (proxy.kind === "unix") return connectSocket({ path: proxy.path });
  const { url, tls } = proxy;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  if (tls === undefined) return connectSocket({ host, port, noDelay: true });
  return connectTls({ host, port, ...tls, ...(isIP(host) === 0 ? { servername: host } : {}) }).setNoDelay(true);
}

/** For messages: as Kubernetes names the proxy. */
function addressOf(proxy: ProxyAddress): string {
  return proxy.kind === "unix" ? proxy.path : proxy.url.host;
}

/** Go's text. */
function describeDialError(error: NodeJS.ErrnoException, proxy: ProxyAddress): Error {
  const network = proxy.kind === "unix" ? "unix" : "tcp";
  const reason = REASONS[error.code ?? ""];
  const message = reason === undefined ? error.message : `dial ${network} ${addressOf(proxy)}: connect: ${reason}`;
  return new Error(message, { cause: error });
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ENOENT: "no such file or directory",
  EACCES: "permission denied",
  EHOSTUNREACH: "no route to host",
};

/** The end that sends first on a connection. */
export type FirstSender = "client" | "any";

interface TunnelOptions {
  /** `host:port` */
  readonly target: string;
  readonly firstSender: FirstSender;
}

/** Resolves when the proxy has connected the socket to the target. Destroys the socket if it fails. */
export async function tunnelThrough(
  socket: Socket,
  proxy: ProxyAddress,
  { target, firstSender }: TunnelOptions,
  clock: Clock,
): Promise<Socket> {
  const address = addressOf(proxy);
  try {
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: 127.0.0.1${END_OF_HEAD}`);
    const head = await readHead(socket, clock).catch((cause: Error) => {
      throw new Error(`reading HTTP response from CONNECT to ${target} via proxy ${address} failed: ${cause.message}`, {
        cause,
      });
    });
    const end = head.indexOf(END_OF_HEAD);
    const [line = ""] = head.toString("latin1", 0, end).split("\r\n", 1);
    const status = /^HTTP\/1\.[01] ((\d{3})(?: .*)?)$/.exec(line);
    if (status === null) {
      const why = `malformed HTTP response ${JSON.stringify(line.slice(0, 200))}`;
      throw new Error(`reading HTTP response from CONNECT to ${target} via proxy ${address} failed: ${why}`);
    }
    if (status[2] !== "200") {
      throw new Error(`proxy error from ${address} while dialing ${target}, code ${status[2]}: ${status[1]}`);
    }
    const rest = head.subarray(end + END_OF_HEAD.length);
    if (rest.length > 0 && firstSender === "client") {
      // They are not the destination's.
      throw new Error(`unexpected ${rest.length} bytes of buffered data from CONNECT proxy "${address}"`);
    }
    if (rest.length > 0) socket.unshift(rest);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function readHead(socket: Socket, clock: Clock): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let head = Buffer.alloc(0);
  // Unlike a listener of "data", this leaves the stream as it was for the connection's user.
  const onReadable = (): void => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      head = Buffer.concat([head, chunk]);
      if (head.includes(END_OF_HEAD)) {
        resolve(head);
        return;
      }
      if (head.length > HEAD_BYTES_MAX) reject(new Error("unexpected EOF"));
    }
  };
  const onEnd = (): void => reject(new Error("unexpected EOF"));
  const timer = clock.timer(TIMEOUT_MS, () => reject(new Error("i/o timeout")));
  socket.on("readable", onReadable).once("end", onEnd).once("close", onEnd).once("error", reject);
  try {
    return await promise;
  } finally {
    timer.cancel();
    socket.off("readable", onReadable).off("end", onEnd).off("close", onEnd).off("error", reject);
  }
}
