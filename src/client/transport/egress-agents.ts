/** Agents of node:http and node:https whose connections a connector opens. */
import { Agent as HttpAgent, type RequestOptions } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ConnectionOptions } from "node:tls";
import { type Connector, openThrough } from "./connector.ts";

type OnConnection = (error: Error | null, socket: Duplex) => void;

/** `connector` undefined: connections are direct. */
export function createHttpAgent(
  options: ConstructorParameters<typeof HttpAgent>[0],
  connector: Connector | undefined,
): HttpAgent {
  return connector === undefined ? new HttpAgent(options) : new EgressHttpAgent(options, connector);
}

/** `connector` undefined: connections are direct. */
export function createHttpsAgent(
  options: ConstructorParameters<typeof HttpsAgent>[0],
  connector: Connector | undefined,
): HttpsAgent {
  return connector === undefined ? new HttpsAgent(options) : new EgressHttpsAgent(options, connector);
}

class EgressHttpAgent extends HttpAgent {
  readonly #connector: Connector;

  constructor(options: ConstructorParameters<typeof HttpAgent>[0], connector: Connector) {
    super(options);
    this.#connector = connector;
  }

  /** Called by node:http for each new connection. */
  override createConnection({ host, port }: RequestOptions, onConnection: OnConnection): undefined {
    openThrough(this.#connector, { host: String(host), port: Number(port) }, undefined, onConnection);
  }

  /** A tunnel may be no socket, which node:http expects of connections for further requests; false: it is destroyed. */
  override keepSocketAlive(socket: Duplex): boolean {
    if (!(socket instanceof Socket)) return false;
    const isKept: unknown = super.keepSocketAlive(socket);
    return isKept === true;
  }
}

class EgressHttpsAgent extends HttpsAgent {
  readonly #connector: Connector;

  constructor(options: ConstructorParameters<typeof HttpsAgent>[0], connector: Connector) {
    super(options);
    this.#connector = connector;
  }

  /** Called by node:http for each new connection. */
  override createConnection(options: RequestOptions, onConnection: OnConnection): undefined {
    const { host, port } = options;
    openThrough(
      this.#connector,
      { host: String(host), port: Number(port) },
      options as ConnectionOptions,
      onConnection,
    );
  }
}
