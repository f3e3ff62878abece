/** The agent's listeners: HTTPS, the read-only port, the health port. */
import { hostname } from "node:os";
import { join } from "node:path";
import { type KeyPair, readKeyPair, writeKeyPair } from "../../auth/pki/key-pair.ts";
import type { Client } from "../../client/client.ts";
import { explainAddressInUse } from "../../http/server/address-in-use.ts";
import type { Listener } from "../../http/server/listener.ts";
import { listen } from "../../http/server/server.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { AgentConfig } from "../agent-config.ts";
import { CertificateFiles } from "../certificates/certificate-files.ts";
import type { PodManager } from "../pods/pod-manager.ts";
import { type AgentHandlerOptions, createAgentHandler, createHealthHandler } from "./agent-handler.ts";
import { type AgentAuthentication, createAgentAuthentication } from "./authentication.ts";
import { createAgentAuthorization } from "./authorization.ts";

export interface AgentServerOptions {
  readonly config: AgentConfig;
  readonly pods: PodManager;
  /** For TokenReviews and SubjectAccessReviews; undefined for an agent without an API server. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ips: readonly string[];
  readonly problems: () => readonly string[];
}

export interface AgentServer extends AsyncDisposable {
  /** Address of the HTTPS listener; undefined when it is off. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
  /** Sets the certificate of new connections. */
  readonly useCertificate: (pair: KeyPair) => void;
}

const CERTIFICATE_DAYS = 365;
/** How long requests in flight may take when the agent stops. */
const DRAIN_MS = 1_000;

/** Rejects when a port is in use or a certificate cannot be read; closes all listeners then. */
export async function startAgentServer(options: AgentServerOptions): Promise<AgentServer> {
  const { config, client, clock, log, pods, problems } = options;
  const { server } = config;
  const listeners: Listener[] = [];
  let main: Listener | undefined;
  let authentication: AgentAuthentication | undefined;
  const close = async (): Promise<void> => {
    authentication?.[Symbol.dispose]();
    await Promise.all(listeners.map((each) => each.close(DRAIN_MS)));
  };
  const handler = (access: Pick<AgentHandlerOptions, "authenticate" | "authorize">, debugging: boolean) =>
    createAgentHandler({ ...access, pods, clock, problems, configz: config.configz, debugging });
  try {
    if (server.enabled) {
      const tls = await loadServingCertificate(options);
      authentication = await createAgentAuthentication({ server, client, clock, log });
      const { nodeName } = config;
      const authorize = createAgentAuthorization({ nodeName, settings: server.authorization, client, clock, log });
      const ca = authentication.clientCa();
      const opened = listen({
        handler: handler({ authenticate: authentication.authenticate, authorize }, server.debuggingHandlers),
        log,
        clock,
        host: server.address,
        port: server.port,
        tls: {
          ...tls,
          minVersion: server.tlsMinVersion,
          ciphers: server.tlsCiphers,
          requestCert: ca !== undefined,
          ...(ca === undefined ? {} : { ca }),
        },
      });
      main = await explainAddressInUse("--port", opened);
      listeners.push(main);
      if (server.readOnlyPort > 0) {
        const open = handler({ authenticate: undefined }, false);
        const readable = listen({ handler: open, log, clock, host: server.address, port: server.readOnlyPort });
        listeners.push(await explainAddressInUse("--read-only-port", readable));
      }
    }
    if (server.healthzPort > 0) {
      const host = server.healthzAddress;
      const health = listen({ handler: createHealthHandler(problems), log, clock, host, port: server.healthzPort });
      listeners.push(await explainAddressInUse("--healthz-port", health));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    address: main === undefined ? undefined : { host: main.address, port: main.port },
    useCertificate: (pair) => {
      const ca = authentication?.clientCa();
      main?.reloadTls(ca === undefined ? pair : { ...pair, ca });
    },
    [Symbol.asyncDispose]: close,
  };
}

/**
 * The files of the flags, else the one signed by the cluster, else that of a previous start, else a new self-signed
 * one.
 */
async function loadServingCertificate({ config, clock, ips }: AgentServerOptions): Promise<KeyPair> {
  const { tlsCertFile, tlsKeyFile } = config.server;
  if (tlsCertFile !== "" && tlsKeyFile !== "") {
    const configured = await readKeyPair({ certFile: tlsCertFile, keyFile: tlsKeyFile });
    if (configured === undefined) throw new Error(`Cannot serve: ${tlsCertFile} or ${tlsKeyFile} does not exist`);
    return configured;
  }
  const signed = config.certificates.rotateServing
    ? await new CertificateFiles(config.certDir, "server").read()
    : undefined;
  if (signed !== undefined) return signed;
  const files = { certFile: join(config.certDir, "svclet.crt"), keyFile: join(config.certDir, "svclet.key") };
  const kept = await readKeyPair(files);
  if (kept !== undefined) return kept;
  const now = clock.now();
  const { issueCertificate, createCa } = await import("../../auth/pki/certificate-authority.ts");
  const ca = await createCa(`${config.nodeName}-ca`, CERTIFICATE_DAYS, now);
  const names = [...new Set([config.nodeName, hostname(), "localhost", "127.0.0.1", ...ips])];
  const pair = await issueCertificate(
    ca,
    { commonName: config.nodeName, alternativeNames: names, usages: ["server"], days: CERTIFICATE_DAYS },
    now,
  );
  const chain = { cert: `${pair.cert}${ca.cert}`, key: pair.key };
  await writeKeyPair(files, chain);
  return chain;
}
