/** TLS connections to extension servers: a pool for each API service, with its CA and the certificate of the proxy. */
import { Agent, type AgentOptions, type RequestOptions } from "node:https";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, checkServerIdentity, connect, type TLSSocket } from "node:tls";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import { type Connector, openThrough } from "../../client/transport/connector.ts";
import { isSignedByNamesake, isTakenForSelfSigned } from "../../client/transport/namesake-issuer.ts";
import type { ExtensionApi } from "./registered-api.ts";

export interface ConnectionsOptions {
  /** The current client certificate of the proxy; undefined: none is sent. */
  readonly clientCertificate: () => KeyPair | undefined;
  /** Returns how to connect; undefined: directly. */
  readonly connector: () => Connector | undefined;
}

/** Connections to one extension server; further requests wait. */
const CONNECTIONS_MAX = 256;
/** Idle connections that are kept for later requests. */
const IDLE_CONNECTIONS_MAX = 25;
/** Less than servers keep idle connections. */
const IDLE_MS = 30_000;

interface Pool {
  readonly agent: ExtensionAgent;
  readonly certificate: KeyPair | undefined;
  readonly api: ExtensionApi;
}

export class ExtensionConnections implements Disposable {
  readonly #options: ConnectionsOptions;
  /** By the name of the API service. */
  readonly #pools = new Map<string, Pool>();
  readonly #checks = new Map<KeyPair | undefined, ExtensionAgent>();

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** The connections of the API service. They are replaced when the certificate of the proxy or the object changes. */
  agentFor(api: ExtensionApi): Agent {
    const certificate = this.#options.clientCertificate();
    const pool = this.#pools.get(api.name);
    if (pool !== undefined && pool.certificate === certificate && hasSameTls(pool.api, api)) return pool.agent;
    pool?.agent.retire();
    const { name, namespace } = api.service;
    const agent = this.#createAgent({
      ...certificate,
      servername: `${name}.${namespace}.svc`,
      ...(api.insecureSkipTlsVerify ? { rejectUnauthorized: false } : {}),
      ...(api.caBundle === "" ? {} : { ca: api.caBundle }),
    });
    this.#pools.set(api.name, { agent, certificate, api });
    return agent;
  }

  /**
   * Connections of availability checks, which verify no certificate, as in Kubernetes: they show whether a server
   * responds, and their responses are not used.
   */
  checkAgent(): Agent {
    const certificate = this.#options.clientCertificate();
    let agent = this.#checks.get(certificate);
    if (agent === undefined) {
      for (const other of this.#checks.values()) other.retire();
      this.#checks.clear();
      agent = this.#createAgent({ ...certificate, rejectUnauthorized: false });
      this.#checks.set(certificate, agent);
    }
    return agent;
  }

  /** Closes the connections of a deleted API service once their responses have ended. */
  forget(name: string): void {
    this.#pools.get(name)?.agent.retire();
    this.#pools.delete(name);
  }

  [Symbol.dispose](): void {
    for (const { agent } of this.#pools.values()) agent.destroy();
    for (const agent of this.#checks.values()) agent.destroy();
  }

  #createAgent(tls: ConnectionOptions): ExtensionAgent {
    const limits = { maxSockets: CONNECTIONS_MAX, maxFreeSockets: IDLE_CONNECTIONS_MAX, timeout: IDLE_MS };
    return new ExtensionAgent(this.#options.connector, { ...tls, ...limits, keepAlive: true });
  }
}

function hasSameTls(a: ExtensionApi, b: ExtensionApi): boolean {
  return (
    a.caBundle === b.caBundle &&
    a.insecureSkipTlsVerify === b.insecureSkipTlsVerify &&
    a.service.name === b.service.name &&
    a.service.namespace === b.service.namespace
  );
}

type OnConnection = (error: Error | null, socket: Duplex) => void;

class ExtensionAgent extends Agent {
  readonly #connector: ConnectionsOptions["connector"];
  /** OpenSSL has taken a certificate for self-signed: further ones are verified here, too. */
  #verifiesNamesakes = false;

  constructor(connector: ConnectionsOptions["connector"], options: AgentOptions) {
    super(options);
    this.#connector = connector;
  }

  /** Called by node:http for each new connection. */
  override createConnection(options: RequestOptions, onConnection: OnConnection): Duplex | null | undefined {
    const open = this.#connector();
    const verified: ConnectionOptions = { ...options, checkServerIdentity: requireSubjectAltName } as ConnectionOptions;
    const { host, port } = options;
    const target = { host: String(host), port: Number(port) };
    if (this.#verifiesNamesakes) return this.#openUnverified(open, target, verified, onConnection);
    const observe: OnConnection = (error, socket) => {
      this.#observe(socket);
      onConnection(error, socket);
    };
    if (open === undefined) return this.#observe(super.createConnection(verified as RequestOptions, onConnection));
    openThrough(open, target, verified, observe);
    return undefined;
  }

  #observe<T extends Duplex | null | undefined>(socket: T): T {
    socket?.once("error", (error) => {
      this.#verifiesNamesakes ||= isTakenForSelfSigned(error) && typeof this.options.ca === "string";
    });
    return socket;
  }

  /** The connection is verified after the handshake, before the agent gets it. */
  #openUnverified(
    open: Connector | undefined,
    target: { readonly host: string; readonly port: number },
    verified: ConnectionOptions,
    onConnection: OnConnection,
  ): undefined {
    const options = { ...verified, rejectUnauthorized: false };
    const onSocket: OnConnection = (error, socket) => {
      if (error !== null) return onConnection(error, socket);
      const fail = (reason: Error): void => onConnection(reason, socket);
      // The agent has the socket only after the handshake, and cannot end one that takes for ever.
      const end = () => socket.destroy(new Error("TLS handshake timeout"));
      socket.once("timeout", end).once("error", fail);
      socket.once("secureConnect", () => {
        socket.off("timeout", end).off("error", fail);
        const problem = findProblem(socket as TLSSocket, String(verified.ca), verified.servername ?? target.host);
        if (problem !== undefined) socket.destroy();
        onConnection(problem ?? null, socket);
      });
    };
    if (open === undefined) onSocket(null, connect({ ...options, ...target }));
    else openThrough(open, target, options, onSocket);
  }

  /** Closes idle connections now, and the others with the end of their response. */
  retire(): void {
    this.options.keepAlive = false;
    Object.assign(this, { keepAlive: false });
    for (const socket of Object.values(this.freeSockets).flat()) socket?.destroy();
  }
}

function findProblem(socket: TLSSocket, ca: string, name: string): Error | undefined {
  if (socket.authorized) return undefined;
  if (isSignedByNamesake(socket, ca)) return requireSubjectAltName(name, socket.getPeerCertificate());
  const code = String(socket.authorizationError);
  return Object.assign(new Error(code), { code });
}

/** The code of the error for a certificate that has a common name only. */
export const MISSING_SAN = "ERR_TLS_CERT_WITHOUT_SAN";

/** Node.js compares the common name when a certificate has no other names; Go's libraries do not. */
const requireSubjectAltName: typeof checkServerIdentity = (name, certificate) => {
  if (certificate.subjectaltname !== undefined) return checkServerIdentity(name, certificate);
  const message =
    "tls: failed to verify certificate: x509: certificate relies on legacy Common Name field, use SANs instead";
  return Object.assign(new Error(message), { code: MISSING_SAN });
};
