/** Connections from the API server to node agents, with the current content of the `--svclet-…` files. */
import type { IncomingMessage } from "node:http";
import { type Agent, type AgentOptions, type RequestOptions, request } from "node:https";
import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import type { Node } from "../../api/core/node/schema.ts";
import { usesTunnel } from "../../api/core/node/tunnel.ts";
import { StatusError } from "../../api/status.ts";
import { readKeyPair } from "../../auth/pki/key-pair.ts";
import type { Connector } from "../../client/transport/connector.ts";
import { createHttpsAgent } from "../../client/transport/egress-agents.ts";
import { TUNNEL_STREAMS_MAX } from "../../http/tunnel/tunnel-session.ts";
import { describeConnectionError } from "../../http/upgrade/connect-upgrade.ts";
import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { traceHeaders } from "../../tracing/span.ts";
import type { AgentConnectionConfig } from "../config/config.ts";
import { readFlagFile } from "../config/flag-file.ts";
import type { AgentTunnel, AgentTunnels } from "../tunnels/agent-tunnels.ts";
import { TunnelHttpsAgent } from "../tunnels/tunnel-https-agent.ts";
import { type LocalAgent, LocalHttpsAgent } from "./local-agent.ts";
import { SharedHttpsAgent } from "./shared-agent.ts";

/** The port of an agent whose Node specifies none. */
const AGENT_PORT = 10250;
/** Connections to one agent; further requests wait. Each followed log has one for as long as it is followed. */
const CONNECTIONS_MAX = 4096;
/** Through a tunnel: half of what it admits. */
const TUNNEL_CONNECTIONS_MAX = TUNNEL_STREAMS_MAX / 2;

export interface AgentResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface AgentConnectionDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined: all agents are reached by their addresses. */
  readonly tunnels?: Pick<AgentTunnels, "find" | "explainMissing"> | undefined;
  /** Undefined: no agent runs in this process. */
  readonly localAgent?: LocalAgent | undefined;
  /** How to connect to agents without a tunnel; undefined: directly. */
  readonly connector?: Connector | undefined;
}

export class AgentConnections implements AsyncDisposable {
  readonly #config: AgentConnectionConfig;
  readonly #watching: Disposable;
  readonly #tunnels: AgentConnectionDeps["tunnels"];
  readonly #localAgent: LocalAgent | undefined;
  readonly #connector: Connector | undefined;
  readonly #clock: Clock;
  #tls: AgentTls;
  #connections: Agent;
  /** Connections to `#localAgent`. */
  #localConnections: Agent | undefined;
  /** Connections with previous certificates that are still in use. */
  #previousConnections: readonly Agent[] = [];
  /** Connections of one tunnel: two nodes behind NAT may have the same address. */
  #tunnelConnections = new WeakMap<AgentTunnel, Agent>();

  private constructor(config: AgentConnectionConfig, deps: AgentConnectionDeps, tls: AgentTls) {
    const { clock, log, tunnels, localAgent, connector } = deps;
    this.#config = config;
    this.#tunnels = tunnels;
    this.#localAgent = localAgent;
    this.#connector = connector;
    this.#clock = clock;
    this.#tls = tls;
    this.#connections = this.#createConnections(tls);
    this.#localConnections = createLocalConnections(localAgent, tls);
    let reloading = Promise.resolve();
    let lastError = "";
    const reload = async (): Promise<void> => {
      try {
        if (await this.#reload()) log.info("Reloaded the TLS files for connections to agents");
        lastError = "";
      } catch (error) {
        const message = String(error);
        if (message !== lastError)
          log.error("Cannot reload the TLS files for connections to agents; the previous ones stay in use", error);
        lastError = message;
      }
    };
    this.#watching = watchFiles(filesOf(config), clock, () => {
      reloading = reloading.then(reload);
    });
  }

  /** Rejects with the flag and the file when a file is invalid; later, an invalid file is logged once. */
  static async open(config: AgentConnectionConfig, deps: AgentConnectionDeps): Promise<AgentConnections> {
    return new AgentConnections(config, deps, await readTls(config));
  }

  /** Resolves with the response headers. Throws a `StatusError` 503 or 500 when the agent cannot be reached. */
  async get(node: Node, path: string, signal: AbortSignal): Promise<AgentResponse> {
    const { host, port, agent } = this.reach(node);
    try {
      const response = await this.#request({ agent, host, port, path, signal, headers: traceHeaders() });
      return {
        status: response.statusCode ?? 0,
        contentType: response.headers["content-type"] ?? "text/plain",
        body: response,
      };
    } catch (error) {
      signal.throwIfAborted();
      const url = `https://${host.includes(":") ? `[${host}]` : host}:${port}${path}`;
      const message = `Get "${url}": ${describeConnectionError(error, host, port)}`;
      // Kubernetes' errors of a proxy have no reason.
      throw new StatusError(500, "", message, { cause: error });
    }
  }

  /**
   * The address of a node's agent and its connection pool: through the tunnel if the agent has opened one, within this
   * process if it runs there. Throws a `StatusError` 503 without a preferred address, and for a node whose agent uses a
   * tunnel when none is open.
   */
  reach(node: Node): { readonly host: string; readonly port: number; readonly agent: Agent } {
    const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port || AGENT_PORT;
    const name = node.metadata?.name ?? "";
    const tunnel = this.#tunnels?.find(name);
    // The address is in the serving certificate; it is not connected to.
    if (tunnel !== undefined)
      return { host: this.#findAddress(node) ?? name, port, agent: this.#connectionsOf(tunnel) };
    if (this.#tunnels !== undefined && usesTunnel(node)) {
      throw new StatusError(503, "ServiceUnavailable", `cannot reach the agent: ${this.#tunnels.explainMissing(name)}`);
    }
    const isLocal = this.#localAgent?.nodeName === name;
    const agent = (isLocal ? this.#localConnections : undefined) ?? this.#connections;
    return { host: this.#nodeAddress(node), port, agent };
  }

  #connectionsOf(tunnel: AgentTunnel): Agent {
    const existing = this.#tunnelConnections.get(tunnel);
    if (existing !== undefined) return existing;
    const agent = new TunnelHttpsAgent(tunnel, httpsAgentOptions(this.#tls, TUNNEL_CONNECTIONS_MAX));
    this.#tunnelConnections.set(tunnel, agent);
    return agent;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#watching[Symbol.dispose]();
    for (const each of [...this.#agents(), ...this.#previousConnections]) each.destroy();
  }

  #createConnections(tls: AgentTls): Agent {
    const options = httpsAgentOptions(tls, CONNECTIONS_MAX);
    const connector = this.#connector;
    return connector === undefined ? new SharedHttpsAgent(options, this.#clock) : createHttpsAgent(options, connector);
  }

  #agents(): readonly Agent[] {
    return this.#localConnections === undefined ? [this.#connections] : [this.#connections, this.#localConnections];
  }

  /** Responses in progress continue; new requests use the new certificates. */
  async #reload(): Promise<boolean> {
    const next = await readTls(this.#config);
    if (JSON.stringify(next.identity) === JSON.stringify(this.#tls.identity)) return false;
    this.#tls = next;
    const previous = this.#agents();
    this.#connections = this.#createConnections(next);
    this.#localConnections = createLocalConnections(this.#localAgent, next);
    this.#tunnelConnections = new WeakMap();
    for (const each of previous) if (each instanceof SharedHttpsAgent) each.retire();
    for (const { freeSockets } of previous) for (const socket of Object.values(freeSockets).flat()) socket?.destroy();
    this.#previousConnections = [...this.#previousConnections, ...previous].filter(
      ({ sockets }) => Object.keys(sockets).length > 0,
    );
    return true;
  }

  async #request(options: RequestOptions): Promise<IncomingMessage> {
    const { timeoutMs } = this.#config;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const outgoing = request(options);
    // Only until the headers arrive: a followed log may be silent for as long as its container.
    outgoing.setTimeout(timeoutMs, () => outgoing.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      outgoing.setTimeout(0);
      resolve(response);
    });
    outgoing.end();
    return await promise;
  }

  #findAddress(node: Node): string | undefined {
    const addresses = node.status?.addresses ?? [];
    for (const type of this.#config.preferredAddressTypes) {
      const address = addresses.find((candidate) => candidate.type === type)?.address;
      if (address) return address;
    }
    return undefined;
  }

  #nodeAddress(node: Node): string {
    const address = this.#findAddress(node);
    if (address !== undefined) return address;
    const types = this.#config.preferredAddressTypes.join(" ");
    const name = node.metadata?.name ?? "";
    throw new StatusError(
      503,
      "ServiceUnavailable",
      `no preferred addresses found; known addresses: [${types}] of node ${name}`,
    );
  }
}

type AgentIdentity = Pick<SecureContextOptions, "cert" | "key" | "ca">;

interface AgentTls {
  readonly identity: AgentIdentity;
  /** For all connections: each would create its own, of 40 KiB. */
  readonly context: SecureContext;
}

function filesOf({ clientCertificate, certificateAuthorityFile }: AgentConnectionConfig): readonly string[] {
  return [
    ...(clientCertificate === undefined ? [] : [clientCertificate.certFile, clientCertificate.keyFile]),
    ...(certificateAuthorityFile === undefined ? [] : [certificateAuthorityFile]),
  ];
}

async function readTls(config: AgentConnectionConfig): Promise<AgentTls> {
  const { clientCertificate: files, certificateAuthorityFile: file } = config;
  const pair = files === undefined ? {} : await readKeyPair(files);
  if (pair === undefined) {
    throw new Error(`Cannot read --svclet-client-certificate="${files?.certFile}" or its key: there is no such file`);
  }
  const identity = {
    ...pair,
    ...(file === undefined ? {} : { ca: await readFlagFile("--svclet-certificate-authority", file) }),
  };
  return { identity, context: createSecureContext({ ...identity, ca: identity.ca ?? [] }) };
}

function createLocalConnections(local: LocalAgent | undefined, tls: AgentTls): Agent | undefined {
  if (local === undefined) return undefined;
  return new LocalHttpsAgent(local, String(tls.identity.cert ?? ""), httpsAgentOptions(tls, CONNECTIONS_MAX));
}

function httpsAgentOptions({ identity, context }: AgentTls, maxSockets: number): AgentOptions {
  return {
    secureContext: context,
    ...(identity.ca === undefined ? { rejectUnauthorized: false } : {}),
    keepAlive: true,
    maxSockets,
  };
}
