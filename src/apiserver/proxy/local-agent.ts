/** Connections to the node agent that runs in this process, as with `svc up`: without TLS and system calls. */
import { X509Certificate } from "node:crypto";
import { Agent, type AgentOptions, type RequestOptions } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

export interface LocalAgent {
  readonly nodeName: string;
  /**
   * Opens a connection for a client with these certificates (DER, leaf first), which the agent verifies. Undefined
   * while the agent does not serve.
   */
  connect(certificates: readonly Uint8Array[]): Socket | undefined;
}

type OnConnection = (error: Error | null, socket: Duplex) => void;

export class LocalHttpsAgent extends Agent {
  readonly #local: LocalAgent;
  /** The same bytes for each connection: the agent caches what it has verified. */
  readonly #certificates: readonly Uint8Array[];

  /** `chain`: the client's certificates, PEM. */
  constructor(local: LocalAgent, chain: string, options: AgentOptions) {
    super(options);
    this.#local = local;
    this.#certificates = readChain(chain);
  }

  /** Called by node:http for each new connection. */
  override createConnection(options: RequestOptions, onConnection: OnConnection): Duplex | null | undefined {
    return this.#local.connect(this.#certificates) ?? super.createConnection(options, onConnection);
  }
}

function readChain(pem: string): readonly Uint8Array[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block).raw);
}
