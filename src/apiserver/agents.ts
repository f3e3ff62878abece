/** Connections from the API server to node agents. */
import { readFileSync } from "node:fs";
import { Agent, type Dispatcher } from "undici";
import type { Node } from "../api/core/node.ts";
import { StatusError } from "../api/status.ts";
import type { AgentConnectionConfig } from "./config.ts";

/** Where an agent listens unless its Node says otherwise. */
const AGENT_PORT = 10250;
/** Connections to one agent; more log streams than that wait. */
const CONNECTIONS_MAX = 256;

export interface AgentAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

export class AgentConnections implements AsyncDisposable {
  readonly #config: AgentConnectionConfig;
  #dispatcher: Dispatcher | undefined;

  constructor(config: AgentConnectionConfig) {
    this.#config = config;
  }

  /** Resolves when the answer's headers are in. Throws a `StatusError` 503 or 500 when the agent cannot be asked. */
  async get(node: Node, path: string, signal: AbortSignal): Promise<AgentAnswer> {
    const origin = `https://${this.#addressOf(node)}:${node.status?.daemonEndpoints?.kubeletEndpoint?.Port || AGENT_PORT}`;
    try {
      this.#dispatcher ??= this.#connect();
      const { statusCode, headers, body } = await this.#dispatcher.request({ origin, path, method: "GET", signal });
      const type = headers["content-type"];
      return { status: statusCode, contentType: typeof type === "string" ? type : "text/plain", body };
    } catch (error) {
      signal.throwIfAborted();
      const why = error instanceof Error ? error.message : String(error);
      throw new StatusError(500, "InternalError", `Get "${origin}${path}": ${why}`, { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispatcher?.destroy();
  }

  #connect(): Dispatcher {
    const { clientCertificate, certificateAuthorityFile, timeoutMs } = this.#config;
    const identity =
      clientCertificate === undefined
        ? {}
        : { cert: readFileSync(clientCertificate.certFile), key: readFileSync(clientCertificate.keyFile) };
    const trust =
      certificateAuthorityFile === undefined
        ? { rejectUnauthorized: false }
        : { ca: readFileSync(certificateAuthorityFile) };
    return new Agent({
      connect: { ...identity, ...trust, timeout: timeoutMs },
      connections: CONNECTIONS_MAX,
      // A log that is followed may stay silent for as long as its container does.
      bodyTimeout: 0,
      headersTimeout: timeoutMs,
    });
  }

  #addressOf(node: Node): string {
    const addresses = node.status?.addresses ?? [];
    for (const type of this.#config.preferredAddressTypes) {
      const address = addresses.find((candidate) => candidate.type === type)?.address;
      if (address) return address.includes(":") ? `[${address}]` : address;
    }
    const types = this.#config.preferredAddressTypes.join(" ");
    const name = node.metadata?.name ?? "";
    throw new StatusError(
      503,
      "ServiceUnavailable",
      `no preferred addresses found; known addresses: [${types}] of node ${name}`,
    );
  }
}
