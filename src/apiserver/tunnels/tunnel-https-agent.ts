/** Connections of HTTPS requests through a tunnel: TLS ends at the agent's own server. */
import { Agent, type AgentOptions, type RequestOptions } from "node:https";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect } from "node:tls";
import type { AgentTunnel } from "./agent-tunnels.ts";

type OnConnection = (error: Error | null, socket: Duplex) => void;

export class TunnelHttpsAgent extends Agent {
  readonly #tunnel: AgentTunnel;

  constructor(tunnel: AgentTunnel, options: AgentOptions) {
    super(options);
    this.#tunnel = tunnel;
  }

  /** Called by node:http for each new connection. */
  override createConnection(options: RequestOptions, onConnection: OnConnection): undefined {
    this.#tunnel.dial().then(
      (socket) => onConnection(null, connect({ ...(options as ConnectionOptions), socket })),
      (error: Error) => onConnection(error, undefined as never),
    );
  }
}
