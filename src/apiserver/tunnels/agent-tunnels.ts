/** Connections that agents have opened with `--tunnel`, by which the API server connects to their servers. */
import type { ClientHttp2Session } from "node:http2";
import type { Duplex } from "node:stream";
import type { MessagePort } from "node:worker_threads";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { SwitchedSocket } from "../../http/tunnel/switched-socket.ts";
import {
  dialThroughTunnel,
  keepTunnelAlive,
  openTunnelClient,
  TUNNEL_PROTOCOL,
} from "../../http/tunnel/tunnel-session.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Counter, Gauge, MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import {
  type ClosedTunnel,
  connectThroughThread,
  type LocalTunnels,
  type OtherTunnels,
  serveThread,
  type TunnelChange,
} from "./tunnel-exchange.ts";

/** Nodes whose last tunnel is remembered for errors; the oldest are forgotten. */
const CLOSED_MAX = 5_000;

/** An open tunnel. */
export interface AgentTunnel {
  readonly nodeName: string;
  /** Opens a connection to the agent's server. Rejects with the hop that broke. */
  dial(): Promise<Duplex>;
}

export interface AgentTunnelDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  /** Connects the tunnels of this thread with those of the others; undefined: the server has one thread. */
  readonly share?: ((tunnels: LocalTunnels) => OtherTunnels) | undefined;
}

export class AgentTunnels implements LocalTunnels, AsyncDisposable {
  readonly #deps: AgentTunnelDeps;
  readonly #open = new Map<string, OpenTunnel>();
  /** Those of other threads. */
  readonly #elsewhere = new Map<string, AgentTunnel>();
  readonly #others: OtherTunnels | undefined;
  readonly #closed = new Map<string, ClosedTunnel>();
  readonly #metrics: TunnelMetrics;

  constructor(deps: AgentTunnelDeps) {
    this.#deps = deps;
    this.#metrics = registerTunnelMetrics(deps.metrics);
    this.#others = deps.share?.(this);
  }

  /** Switches the protocol of an authorized request. A tunnel of the node that is open already is closed. */
  accept(nodeName: string, request: HttpRequest, signal: AbortSignal): HttpResponse {
    const { clock, log } = this.#deps;
    const socket = new SwitchedSocket(request.body);
    const session = openTunnelClient(socket);
    const tunnel = new OpenTunnel(nodeName, session, clock, this.#metrics.streams);
    const close = (): void => void session.destroy(new Error("the API server closed the connection"));
    signal.addEventListener("abort", close, { once: true });
    this.#open.get(nodeName)?.close("the agent opened another one");
    this.#open.set(nodeName, tunnel);
    this.#elsewhere.delete(nodeName);
    this.#others?.publish({ nodeName, closed: undefined });
    this.#metrics.opened.inc();
    this.#metrics.open.inc();
    log.info("Opened tunnel", { node: nodeName, address: request.peer.address });
    void keepTunnelAlive(session, clock).then((reason) => {
      signal.removeEventListener("abort", close);
      this.#metrics.open.dec();
      log.info("Closed tunnel", { node: nodeName, reason });
      if (this.#open.get(nodeName) !== tunnel) return;
      this.#open.delete(nodeName);
      const closed = { at: new Date(clock.now()).toISOString(), reason };
      this.#remember(nodeName, closed);
      this.#others?.publish({ nodeName, closed });
    });
    return { status: 101, headers: { upgrade: TUNNEL_PROTOCOL }, body: socket.sent };
  }

  find(nodeName: string): AgentTunnel | undefined {
    return this.#open.get(nodeName) ?? this.#elsewhere.get(nodeName);
  }

  /** Why there is no tunnel: `no tunnel from node n1 is open; last closed at …: …`. */
  explainMissing(nodeName: string): string {
    const closed = this.#closed.get(nodeName);
    const last =
      closed === undefined
        ? "this server has had none since its start"
        : `last closed at ${closed.at}: ${closed.reason}`;
    return `no tunnel from node ${nodeName} is open; ${last}`;
  }

  apply({ nodeName, closed }: TunnelChange): void {
    const others = this.#others;
    if (closed !== undefined) {
      this.#elsewhere.delete(nodeName);
      this.#remember(nodeName, closed);
    } else if (others !== undefined) {
      const dial = (): Promise<Duplex> => connectThroughThread(others, nodeName, this.#deps.clock);
      this.#elsewhere.set(nodeName, { nodeName, dial });
    }
  }

  replace(nodeName: string): void {
    this.#open.get(nodeName)?.close("the agent opened another one");
  }

  connect(nodeName: string, port: MessagePort): void {
    const tunnel = this.#open.get(nodeName);
    if (tunnel === undefined) port.close();
    else void serveThread(tunnel.dial(), port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const tunnel of this.#open.values()) tunnel.close("the API server stopped");
  }

  #remember(nodeName: string, closed: ClosedTunnel): void {
    this.#closed.delete(nodeName);
    this.#closed.set(nodeName, closed);
    const [oldest] = this.#closed.keys();
    if (this.#closed.size > CLOSED_MAX && oldest !== undefined) this.#closed.delete(oldest);
  }
}

class OpenTunnel implements AgentTunnel {
  readonly nodeName: string;
  readonly #session: ClientHttp2Session;
  readonly #clock: Clock;
  readonly #streams: Gauge;

  constructor(nodeName: string, session: ClientHttp2Session, clock: Clock, streams: Gauge) {
    this.nodeName = nodeName;
    this.#session = session;
    this.#clock = clock;
    this.#streams = streams;
  }

  async dial(): Promise<Duplex> {
    try {
      const stream = await dialThroughTunnel(this.#session, this.#clock);
      this.#streams.inc();
      stream.once("close", () => this.#streams.dec());
      return stream;
    } catch (error) {
      throw new Error(`tunnel from node ${this.nodeName}: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }

  close(reason: string): void {
    this.#session.destroy(new Error(reason));
  }
}

interface TunnelMetrics {
  readonly open: Gauge;
  readonly streams: Gauge;
  readonly opened: Counter;
}

function registerTunnelMetrics(metrics: MetricRegistry): TunnelMetrics {
  return {
    open: metrics
      .gauge({ name: "apiserver_agent_tunnels", help: "Open tunnels of agents that run with --tunnel." })
      .with(),
    streams: metrics
      .gauge({ name: "apiserver_agent_tunnel_streams", help: "Connections to agents through their tunnels." })
      .with(),
    opened: metrics
      .counter({ name: "apiserver_agent_tunnels_opened_total", help: "Tunnels that agents have opened." })
      .with(),
  };
}
