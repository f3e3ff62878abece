/** Tunnels of agents in a server with several threads: each ends in one thread, and all threads connect through it. */
import type { Duplex } from "node:stream";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { PortStream } from "../../http/tunnel/port-stream.ts";
import type { Clock } from "../../std/time/clock.ts";

export interface ClosedTunnel {
  /** RFC 3339 */
  readonly at: string;
  readonly reason: string;
}

/** A thread has opened or closed the tunnel of a node. */
export interface TunnelChange {
  readonly nodeName: string;
  /** Undefined: the tunnel is open. */
  readonly closed: ClosedTunnel | undefined;
}

/** The tunnels of one thread, for the others. */
export interface LocalTunnels {
  /** Another thread has opened or closed the tunnel of a node. */
  apply(change: TunnelChange): void;
  /** The node has opened its tunnel in another thread. */
  replace(nodeName: string): void;
  /** Opens a connection through the tunnel for the thread at the other end of the port. */
  connect(nodeName: string, port: MessagePort): void;
}

/** What a thread does with the tunnels of the others. */
export interface OtherTunnels {
  publish(change: TunnelChange): void;
  /** Passes the port to the thread that has the tunnel of the node; closes it when none has. */
  connect(nodeName: string, port: MessagePort): void;
}

/** More than the time that the thread of the tunnel has. */
const CONNECT_MS_MAX = 35_000;

/** The first message of a connection. */
interface Connected {
  /** Undefined: the bytes of the connection follow. */
  readonly error: string | undefined;
}

/** Opens a connection through a tunnel of another thread. */
export function connectThroughThread(
  others: OtherTunnels,
  nodeName: string,
  clock: Pick<Clock, "timer">,
): Promise<Duplex> {
  const { port1: port, port2 } = new MessageChannel();
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
  const fail = (reason: string): void => {
    timer.cancel();
    port.close();
    reject(new Error(reason));
  };
  const onClose = (): void => fail(`tunnel from node ${nodeName}: the tunnel closed`);
  const timer = clock.timer(CONNECT_MS_MAX, () => fail(`tunnel from node ${nodeName}: i/o timeout`));
  port.once("close", onClose);
  port.once("message", ({ error }: Connected) => {
    port.off("close", onClose);
    if (error !== undefined) return fail(error);
    timer.cancel();
    resolve(new PortStream(port));
  });
  others.connect(nodeName, port2);
  return promise;
}

/** Joins a connection that is being opened with the port of another thread. */
export async function serveThread(opening: Promise<Duplex>, port: MessagePort): Promise<void> {
  let isClosed = false;
  port.once("close", () => {
    isClosed = true;
  });
  try {
    const stream = await opening;
    port.postMessage({ error: undefined } satisfies Connected);
    if (isClosed) stream.destroy();
    else join(stream, new PortStream(port));
  } catch (error) {
    port.postMessage({ error: error instanceof Error ? error.message : String(error) } satisfies Connected);
    port.close();
  }
}

function join(stream: Duplex, remote: PortStream): void {
  for (const each of [stream, remote]) each.on("error", () => {});
  stream.pipe(remote);
  remote.pipe(stream);
  // What has arrived is still sent.
  stream.once("close", () => remote.end());
  remote.once("close", () => stream.destroy());
}
