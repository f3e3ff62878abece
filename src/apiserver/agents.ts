/** Connections from the API server to node agents. */
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, type RequestOptions, request } from "node:https";
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
  #connections: Agent | undefined;

  constructor(config: AgentConnectionConfig) {
    this.#config = config;
  }

  /** Resolves when the answer's headers are in. Throws a `StatusError` 503 or 500 when the agent cannot be asked. */
  async get(node: Node, path: string, signal: AbortSignal): Promise<AgentAnswer> {
    const { host, port, agent } = this.reach(node);
    try {
      const answer = await this.#ask({ agent, host, port, path, signal });
      return {
        status: answer.statusCode ?? 0,
        contentType: answer.headers["content-type"] ?? "text/plain",
        body: answer,
      };
    } catch (error) {
      signal.throwIfAborted();
      const why = error instanceof Error ? error.message : String(error);
      const url = `https://${host.includes(":") ? `[${host}]` : host}:${port}${path}`;
      throw new StatusError(500, "InternalError", `Get "${url}": ${why}`, { cause: error });
    }
  }

  /** Where the agent of a node is, and what opens connections to it. Throws a `StatusError` 503 when nobody knows. */
  reach(node: Node): { readonly host: string; readonly port: number; readonly agent: Agent } {
    const host = this.#addressOf(node);
    const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port || AGENT_PORT;
    this.#connections ??= this.#connect();
    return { host, port, agent: this.#connections };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connections?.destroy();
  }

  async #ask(options: RequestOptions): Promise<IncomingMessage> {
    const { timeoutMs } = this.#config;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const asking = request(options);
    // Until the headers are in: a log that is followed may stay silent for as long as its container does.
    asking.setTimeout(timeoutMs, () => asking.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    asking.on("error", reject);
    asking.on("response", (answer) => {
      asking.setTimeout(0);
      resolve(answer);
    });
    asking.end();
    return await promise;
  }

  #connect(): Agent {
    const { clientCertificate, certificateAuthorityFile } = this.#config;
    const identity =
      clientCertificate === undefined
        ? {}
        : { cert: readFileSync(clientCertificate.certFile), key: readFileSync(clientCertificate.keyFile) };
    const trust =
      certificateAuthorityFile === undefined
        ? { rejectUnauthorized: false }
        : { ca: readFileSync(certificateAuthorityFile) };
    return new Agent({ ...identity, ...trust, keepAlive: true, maxSockets: CONNECTIONS_MAX });
  }

  #addressOf(node: Node): string {
    const addresses = node.status?.addresses ?? [];
    for (const type of this.#config.preferredAddressTypes) {
      const address = addresses.find((candidate) => candidate.type === type)?.address;
      if (address) return address;
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
