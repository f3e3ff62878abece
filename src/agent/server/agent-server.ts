/** The agent's listeners: HTTPS, the read-only port, the health port. */
import type { Socket } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { type KeyPair, type KeyPairFiles, readKeyPair, writeKeyPair } from "../../auth/pki/key-pair.ts";
import type { Client } from "../../client/client.ts";
import { createLocalConnection, localPeer } from "../../http/local-connection.ts";
import { explainAddressInUse } from "../../http/server/address-in-use.ts";
import type { Listener } from "../../http/server/listener.ts";
import { listen } from "../../http/server/server.ts";
import type { EventLoopContention } from "../../profiling/contention.ts";
import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Tracer } from "../../tracing/tracer.ts";
import type { AgentConfig } from "../agent-config.ts";
import { CertificateFiles } from "../certificates/certificate-files.ts";
import type { RemovedLogs } from "../logs/removed-logs.ts";
import type { ReviewMetrics } from "../metrics/review-metrics.ts";
import type { PodManager } from "../pods/pod-manager.ts";
import type { Figures } from "../stats/figures.ts";
import type { ProvisionedVolumes } from "../volumes/local/provisioned-volumes.ts";
import { type AgentHandlerOptions, createAgentHandler, createHealthHandler } from "./agent-handler.ts";
import { type AgentAuthentication, createAgentAuthentication } from "./authentication.ts";
import { createAgentAuthorization } from "./authorization.ts";
import type { AcceptConnection } from "./shared-connections.ts";

export interface AgentServerOptions {
  readonly config: AgentConfig;
  readonly pods: PodManager;
  /** For TokenReviews and SubjectAccessReviews; undefined for an agent without an API server. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ips: readonly string[];
  readonly problems: () => readonly string[];
  readonly removedLogs?: RemovedLogs | undefined;
  readonly figures?: Figures | undefined;
  /** Undefined: requests are not traced. */
  readonly tracer?: Tracer | undefined;
  readonly reviews?: ReviewMetrics | undefined;
  /** See `DebugPagesOptions`. */
  readonly setVerbosity?: ((level: number) => void) | undefined;
}

export interface AgentServer extends AsyncDisposable {
  /** Address of the HTTPS listener; undefined when it is off. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
  /**
   * Opens a connection within this process for a client with these certificates (DER, leaf first), which are verified
   * as after a TLS handshake. Undefined when the HTTPS listener is off.
   */
  connect(certificates: readonly Uint8Array[]): Socket | undefined;
  /** Sets the certificate of new connections. */
  readonly useCertificate: (pair: KeyPair) => void;
}

/** Where the host's programs write their logs. */
const NODE_LOGS = "/var/log";
const CERTIFICATE_DAYS = 365;
/** How long requests in flight may take when the agent stops. */
const DRAIN_MS = 1_000;

/** Rejects when a port is in use or a certificate cannot be read; closes all listeners then. */
export async function startAgentServer(options: AgentServerOptions): Promise<AgentServer> {
  const { config, client, clock, log, pods, problems, figures } = options;
  const { server } = config;
  const listeners: Listener[] = [];
  let main: Listener | undefined;
  let authentication: AgentAuthentication | undefined;
  let watching: Disposable | undefined;
  let volumes: ProvisionedVolumes | undefined;
  const close = async (): Promise<void> => {
    watching?.[Symbol.dispose]();
    contention?.[Symbol.dispose]();
    authentication?.[Symbol.dispose]();
    await Promise.all(listeners.map((each) => each.close(DRAIN_MS)));
  };
  // Without authorization, anonymous clients could remove the data of pods.
  const mayChangeVolumes = server.authorization.mode === "Webhook" || !server.anonymousAuth;
  const serveVolumes: AgentHandlerOptions["localVolumes"] = async (request, params) => {
    const { openProvisionedVolumes, serveLocalVolume } = await import("./local-volumes.ts");
    volumes ??= openProvisionedVolumes(config.rootDir, log);
    return await serveLocalVolume(volumes, request, params);
  };
  const contention = server.profiling && server.contentionProfiling ? await measureContention(clock) : undefined;
  const acceptConnection: AcceptConnection = (connection, peer) => main?.accept(connection, peer);
  const handler = (
    access: Pick<AgentHandlerOptions, "authenticate" | "authorize" | "acceptConnection">,
    debugging: boolean,
  ) =>
    createAgentHandler({
      ...access,
      pods,
      clock,
      problems,
      configz: config.configz,
      debugging,
      removedLogs: options.removedLogs,
      splitLogs: server.splitLogs,
      streamIdleMs: server.streamIdleMs,
      figures,
      tracer: options.tracer,
      status: { ...config.observability, version: config.version },
      nodeLogQuery: server.nodeLogQuery,
      checkpoints: server.checkpoints,
      nodeLogs: server.nodeLogs ? NODE_LOGS : undefined,
      localVolumes: mayChangeVolumes ? serveVolumes : undefined,
      debugPages: {
        profiling: server.profiling,
        contention,
        setVerbosity: server.debugFlags ? (options.setVerbosity ?? (() => undefined)) : undefined,
      },
    });
  const useCertificate = (pair: KeyPair): void => {
    const ca = authentication?.clientCa();
    main?.reloadTls(ca === undefined ? pair : { ...pair, ca });
  };
  try {
    if (server.enabled) {
      const { pair, files } = await loadServingCertificate(options);
      const metrics = options.reviews;
      authentication = await createAgentAuthentication({ server, client, clock, log, metrics });
      const { nodeName } = config;
      const settings = server.authorization;
      const authorize = createAgentAuthorization({ nodeName, settings, client, clock, log, metrics });
      const ca = authentication.clientCa();
      const opened = listen({
        handler: handler(
          { authenticate: authentication.authenticate, authorize, acceptConnection },
          server.debuggingHandlers,
        ),
        log,
        clock,
        host: server.address,
        port: server.port,
        upgrades: true,
        tls: {
          ...pair,
          minVersion: server.tlsMinVersion,
          ciphers: server.tlsCiphers,
          requestCert: ca !== undefined,
          ...(ca === undefined ? {} : { ca }),
        },
      });
      main = await explainAddressInUse("--port", opened);
      listeners.push(main);
      if (files !== undefined && server.reloadsCertificate)
        watching = watchServingCertificate(files, pair, { clock, log, use: useCertificate });
    }
    if (server.readOnlyPort > 0) {
      const open = handler({ authenticate: undefined }, false);
      const readable = listen({ handler: open, log, clock, host: server.address, port: server.readOnlyPort });
      listeners.push(await explainAddressInUse("--read-only-port", readable));
    }
    if (server.healthzPort > 0) {
      const host = server.healthzAddress;
      const health = listen({ handler: createHealthHandler(), log, clock, host, port: server.healthzPort });
      listeners.push(await explainAddressInUse("--healthz-port", health));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    address: main === undefined ? undefined : { host: main.address, port: main.port },
    connect(certificates) {
      if (main === undefined) return undefined;
      const [client, served] = createLocalConnection();
      main.accept(served, localPeer(certificates));
      return client;
    },
    useCertificate,
    [Symbol.asyncDispose]: close,
  };
}

interface ServingCertificate {
  readonly pair: KeyPair;
  /** Undefined for a certificate that the cluster signed: its rotation replaces it. */
  readonly files: KeyPairFiles | undefined;
}

/** Serves with the files' new content when it changes. What cannot be used is logged, and the previous pair stays. */
function watchServingCertificate(
  files: KeyPairFiles,
  first: KeyPair,
  { clock, log, use }: { readonly clock: Clock; readonly log: Logger; readonly use: (pair: KeyPair) => void },
): Disposable {
  let current = first;
  const reload = async (): Promise<void> => {
    const next = await readKeyPair(files);
    if (next === undefined || (next.cert === current.cert && next.key === current.key)) return;
    use(next);
    current = next;
    log.info("Reloaded serving certificate", { file: files.certFile });
  };
  return watchFiles([files.certFile, files.keyFile], clock, () => {
    reload().catch((error: unknown) => log.error("Cannot reload serving certificate", error, { file: files.certFile }));
  });
}

/**
 * With rotation the one signed by the cluster; else the files of the flags, else that of a previous start, else a new
 * self-signed one.
 */
async function loadServingCertificate({ config, clock, ips }: AgentServerOptions): Promise<ServingCertificate> {
  const { tlsCertFile, tlsKeyFile } = config.server;
  const { rotateServing } = config.certificates;
  const signed = rotateServing ? await new CertificateFiles(config.certDir, "server").read() : undefined;
  if (signed !== undefined) return { pair: signed, files: undefined };
  if (tlsCertFile !== "" && tlsKeyFile !== "") {
    const files = { certFile: tlsCertFile, keyFile: tlsKeyFile };
    const configured = await readKeyPair(files);
    if (configured === undefined) throw new Error(`Cannot serve: ${tlsCertFile} or ${tlsKeyFile} does not exist`);
    // A change of the files would replace the certificate that the cluster signs.
    return { pair: configured, files: rotateServing ? undefined : files };
  }
  const files = { certFile: join(config.certDir, "svclet.crt"), keyFile: join(config.certDir, "svclet.key") };
  const watched = rotateServing ? undefined : files;
  const kept = await readKeyPair(files);
  if (kept !== undefined) return { pair: kept, files: watched };
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
  return { pair: chain, files: watched };
}

async function measureContention(clock: Clock): Promise<EventLoopContention> {
  const { EventLoopContention } = await import("../../profiling/contention.ts");
  return new EventLoopContention(clock);
}
