/**
 * Connects the agent to the API server. With `--bootstrap-svcconfig` a new node requests a client certificate with the
 * credentials of that file and writes a connection file. While the agent runs it renews the certificate, and requests
 * one with the bootstrap file again when the server does not accept it any more.
 */

import { X509Certificate } from "node:crypto";
import { access as fileAccess, readFile } from "node:fs/promises";
import { StatusError } from "../../api/status.ts";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import { NODE_USER_PREFIX, NODES } from "../../auth/user.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client, Transport } from "../../client/client.ts";
import { type ClusterAccess, loadKubeconfig, writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import type { ServerCredentials } from "../../client/transport/credentials.ts";
import { networkTransport } from "../../client/transport/transport.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { AgentConfig } from "../agent-config.ts";
import { CertificateFiles } from "../certificates/certificate-files.ts";
import { requestCertificate } from "../certificates/request-certificate.ts";
import { type RotationObserver, rotateCertificate } from "../certificates/rotation.ts";
import { UnauthorizedResponses } from "../certificates/unauthorized-responses.ts";

type Config = Pick<AgentConfig, "nodeName" | "certDir" | "svcconfig" | "certificates">;

export interface Connection extends AsyncDisposable {
  readonly transport: Transport;
  /** `10.0.0.1:6443` */
  readonly host: string;
  /** For a connection of one's own; with the current certificate. */
  credentials(): ServerCredentials;
}

const CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet";
const RETRY = { initialMs: 1_000, maxMs: 60_000, jitter: 0.2 };

/**
 * Resolves when the node has credentials, however long that takes. Rejects for malformed files, and when the signal
 * aborts. `metrics` is called when the client certificate is rotated.
 */
export async function openConnection(
  config: Config & { readonly svcconfig: string },
  clock: Clock,
  log: Logger,
  signal: AbortSignal,
  metrics?: () => RotationObserver,
): Promise<Connection> {
  const { svcconfig, certificates } = config;
  const files = new CertificateFiles(config.certDir, "client");
  const { bootstrapSvcconfig } = certificates;
  if (bootstrapSvcconfig !== undefined) {
    await bootstrap(config, bootstrapSvcconfig, files, clock, log, signal);
  }
  const access = await loadKubeconfig(svcconfig);
  if (access.insecure === true) {
    log.warn("Not verifying the API server's certificate: anyone on the network path can act as the API server", {
      file: svcconfig,
      field: "insecure-skip-tls-verify",
    });
  }
  let credentials: ServerCredentials = { ...access, token: toTokenSource(access) };
  const transport = networkTransport({ ...credentials, clock });
  const unauthorized = new UnauthorizedResponses(clock);
  const stop = new AbortController();
  const rotating = certificates.rotateClient
    ? rotateCertificate(
        {
          certificate:
            access.cert === undefined || access.key === undefined ? undefined : { cert: access.cert, key: access.key },
          request: (until) => renewCertificate(config, transport, clock, until),
          async use(pair) {
            await files.write(pair, clock.now());
            if (access.cert !== undefined) await writeConnection(config, access, files);
            transport.setClientCertificate(pair.cert, pair.key);
            credentials = { ...credentials, ...pair };
            unauthorized.certificateRenewed();
          },
          isCurrent: () => !unauthorized.seen,
          waitForChange: (until) => unauthorized.waitForNext(until),
          description: "client certificate",
          metrics: metrics?.(),
          clock,
          random: systemRandom,
          log,
        },
        AbortSignal.any([signal, stop.signal]),
      )
    : undefined;
  return {
    transport: unauthorized.wrap(transport),
    host: new URL(access.server).host,
    credentials: () => credentials,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("the agent stops"));
      await rotating;
      await transport[Symbol.asyncDispose]();
    },
  };
}

/**
 * Whether the node has joined before and its certificate is valid. A clock before the certificate's time is wrong, so
 * only the end of the validity counts.
 */
async function hasUsableCredentials(
  { svcconfig = "" }: Config,
  files: CertificateFiles,
  clock: Clock,
): Promise<boolean> {
  const isThere = await fileAccess(svcconfig).then(
    () => true,
    () => false,
  );
  if (!isThere) return false;
  const access = await loadKubeconfig(svcconfig).catch(() => undefined);
  if (access === undefined) return false;
  if (access.cert === undefined) return true;
  const pair = (await files.read()) ?? access;
  return new X509Certificate(pair.cert ?? access.cert).validToDate.getTime() > clock.now();
}

/** Does nothing for a node with usable credentials. */
async function bootstrap(
  config: Config,
  file: string,
  files: CertificateFiles,
  clock: Clock,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff(RETRY, systemRandom);
  // Checked each time: with a wrong clock certificates look expired, until the clock is set.
  while (!(await hasUsableCredentials(config, files, clock))) {
    try {
      log.info("Requesting a client certificate", { bootstrap: file, node: config.nodeName });
      const { pair, access } = await requestWithBootstrapFile(config, file, clock, signal);
      await files.write(pair, clock.now());
      await writeConnection(config, access, files);
      return;
    } catch (error) {
      signal.throwIfAborted();
      if ((error as Error).name === "KubeconfigError") throw error;
      if (isUnauthorized(error)) {
        const reason = "the API server does not accept its token, or the token has expired";
        log.error("Cannot request a client certificate with the bootstrap file; trying again", reason, { file });
      } else log.error("Cannot get a client certificate yet; trying again", error);
    }
    await clock.sleep(backoff.next(), signal);
  }
}

/** Uses the current certificate; when the server does not accept it any more, the bootstrap file. */
async function renewCertificate(
  config: Config,
  transport: Transport,
  clock: Clock,
  signal: AbortSignal,
): Promise<KeyPair> {
  const { bootstrapSvcconfig: file } = config.certificates;
  try {
    return await requestClientCertificate(config, createClient({ transport }), signal);
  } catch (error) {
    if (file === undefined || !isUnauthorized(error)) throw error;
    return (await requestWithBootstrapFile(config, file, clock, signal)).pair;
  }
}

/** Reads the file each time: an expired token may have been replaced. */
async function requestWithBootstrapFile(
  config: Config,
  file: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<{ readonly pair: KeyPair; readonly access: ClusterAccess }> {
  const access = await loadKubeconfig(file);
  await using transport = networkTransport({ ...access, token: toTokenSource(access), clock });
  return { pair: await requestClientCertificate(config, createClient({ transport }), signal), access };
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof StatusError && error.status.code === 401;
}

async function requestClientCertificate({ nodeName }: Config, client: Client, signal: AbortSignal) {
  const subject = { commonName: `${NODE_USER_PREFIX}${nodeName}`, organizations: [NODES] };
  return await requestCertificate({ client, signerName: CLIENT_SIGNER, subject, usage: "client auth", signal });
}

/** Writes a connection file with the server of the bootstrap file and the link to the node's certificate. */
async function writeConnection(
  { svcconfig = "" }: Config,
  { server, ca, tlsServerName, insecure }: ClusterAccess,
  { current }: CertificateFiles,
): Promise<void> {
  const names = { cluster: "default-cluster", user: "default-auth", context: "default-context" };
  const cluster = { server, ca, tlsServerName, insecure };
  await writeKubeconfig(svcconfig, { ...cluster, ...names, certFile: current, keyFile: current });
}

function toTokenSource({ token, tokenFile }: ClusterAccess) {
  return tokenFile === undefined ? token : async () => (await readFile(tokenFile, "utf8")).trim();
}
