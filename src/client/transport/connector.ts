/** How connections to a server are opened, below TLS: through an egress proxy, for example. */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { buildConnector } from "undici";
import { createLocalConnection } from "../../http/local-connection.ts";

/** Resolves with an open connection. `host` is a name or an address without brackets. */
export type Connector = (host: string, port: number) => Promise<Duplex>;

/** A function for undici's option `connect`. `tls`: the options of TLS, with undici's own. */
export async function connectThrough(
  connector: Connector,
  tls: buildConnector.BuildOptions,
): Promise<buildConnector.connector> {
  const undici = await import("undici");
  const overTls = undici.buildConnector(tls);
  return (options, callback) => {
    const { hostname, port, protocol } = options;
    const secure = protocol === "https:";
    connector(withoutBrackets(hostname), Number(port) || (secure ? 443 : 80)).then(
      (socket) => {
        // undici's types name a Socket; TLS needs no more than a stream.
        if (secure) overTls({ ...options, httpSocket: socket as Socket }, callback);
        else callback(null, toSocket(socket));
      },
      (error: Error) => callback(error, null),
    );
  };
}

/** For `createConnection` of an agent of node:http or node:https. `tls` undefined: plain HTTP. */
export function openThrough(
  connector: Connector,
  { host, port }: { readonly host: string; readonly port: number },
  tls: ConnectionOptions | undefined,
  onConnection: (error: Error | null, socket: Duplex) => void,
): void {
  connector(withoutBrackets(host), port).then(
    (socket) => onConnection(null, tls === undefined ? toSocket(socket) : connectTls({ ...tls, socket })),
    (error: Error) => onConnection(error, undefined as never),
  );
}

/** HTTP without TLS needs a socket, with its timeouts. */
function toSocket(stream: Duplex): Socket {
  if (stream instanceof Socket) return stream;
  const [near, far] = createLocalConnection();
  far.on("error", () => stream.destroy());
  stream.on("error", (error) => far.destroy(error));
  far.once("close", () => stream.destroy());
  stream.once("close", () => far.destroy());
  stream.pipe(far).pipe(stream);
  return near;
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, "");
}
