/** How connections to a server are opened, below TLS: through an egress proxy, for example. */
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { buildConnector } from "undici";

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
        // undici's types name a Socket; it needs no more than a stream.
        const stream = socket as Parameters<typeof callback>[1];
        if (secure) overTls({ ...options, httpSocket: stream as NonNullable<typeof options.httpSocket> }, callback);
        else callback(null, stream as NonNullable<typeof stream>);
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
    (socket) => onConnection(null, tls === undefined ? socket : connectTls({ ...tls, socket })),
    (error: Error) => onConnection(error, undefined as never),
  );
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, "");
}
