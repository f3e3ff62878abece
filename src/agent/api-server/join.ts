/**
 * `svc agent --join URL --token T --ca-hash H`: reads the server's CA from its cluster-info and trusts it when the hash
 * matches; the token is sent only then. The rest is `bootstrap.ts`.
 */
import { createHash, X509Certificate } from "node:crypto";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { writeFileDurably } from "../../auth/pki/key-pair.ts";
import { type ClusterAccess, loadKubeconfig, writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { readAll } from "../../client/response.ts";
import type { TlsIdentity } from "../../client/transport/dial.ts";
import { externalTransport } from "../../client/transport/external-transport.ts";
import { makeRequest } from "../../http/request.ts";
import { constantTimeEqual } from "../../std/crypto/constant-time-equal.ts";
import type { AgentConfig } from "../agent-config.ts";

export interface JoinOptions {
  /** `https://host:6443` */
  readonly server: string;
  readonly token: string;
  /** `sha256:` and the hash of the CA's public key, as `kubeadm` writes it. */
  readonly caHash: string;
}

const CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
const RESPONSE_TIMEOUT_MS = 30_000;
/** Bounds the response of a server that is not trusted yet. */
const RESPONSE_BYTES_MAX = 1024 * 1024;

/**
 * The configuration with the files that joining needs; a node that has joined keeps its files. Rejects with one
 * sentence for the operator.
 */
export async function joinCluster(
  config: AgentConfig,
  options: JoinOptions,
  signal: AbortSignal,
): Promise<AgentConfig> {
  const file = (name: string): string => join(config.rootDir, name);
  const svcconfig = config.svcconfig ?? file("svcconfig");
  const [bootstrap, authority] = [file("bootstrap.svcconfig"), file("api-server-ca.crt")];
  const existing = await Promise.all([svcconfig, authority].map(exists));
  if (existing.includes(false)) {
    const { ca, clientCa: callers } = await discoverCluster(options, signal);
    await checkToken(options, ca, signal);
    await writeFileDurably(authority, callers, 0o644);
    await writeBootstrap(bootstrap, options, ca);
  } else await updateToken(bootstrap, options);
  // Files of the operator are served as they are.
  const rotateServing = config.server.tlsCertFile === "" || config.server.tlsKeyFile === "";
  return {
    ...config,
    svcconfig,
    certificates: { bootstrapSvcconfig: bootstrap, rotateClient: true, rotateServing },
    server: { ...config.server, clientCaFile: config.server.clientCaFile || authority, anonymousAuth: false },
  };
}

async function writeBootstrap(path: string, { server, token }: JoinOptions, ca: string): Promise<void> {
  await writeKubeconfig(path, { server, ca, token, cluster: "cluster", user: "bootstrap" });
}

/** A node whose certificate has expired needs the bootstrap file with the new token. */
async function updateToken(path: string, invitation: JoinOptions): Promise<void> {
  const { server, token, ca } = await loadKubeconfig(path).catch((): Partial<ClusterAccess> => ({}));
  if (ca === undefined || publicKeyHash(ca) !== invitation.caHash.toLowerCase()) return;
  if (!constantTimeEqual(token ?? "", invitation.token) || server !== invitation.server)
    await writeBootstrap(path, invitation, ca);
}

interface Cluster {
  /** PEM: the CA of the server's certificate. */
  readonly ca: string;
  /** PEM: the CA of clients that may call the agent. */
  readonly clientCa: string;
}

async function discoverCluster({ server, caHash }: JoinOptions, signal: AbortSignal): Promise<Cluster> {
  // Nothing secret is sent and nothing is trusted before the CA has the right hash.
  const unverified = await readClusterInfo(server, { insecure: true, signal });
  const cas = await parseCas(unverified, server);
  const ca = cas.find((pem) => publicKeyHash(pem) === caHash.toLowerCase());
  if (ca === undefined) {
    throw new Error(
      `Cannot join ${server}: none of its CAs has the hash ${caHash}; check --ca-hash with the issuer of the token`,
    );
  }
  const data = await readClusterInfo(server, { ca, signal });
  return { ca, clientCa: data["agent-ca.crt"] ?? ca };
}

async function parseCas({ kubeconfig = "" }: Readonly<Record<string, string>>, server: string): Promise<string[]> {
  const { parseClusterInfo } = await import("./cluster-info.ts");
  const { ca } = parseClusterInfo(kubeconfig);
  if (ca === undefined) throw new Error(`Cannot join ${server}: its cluster-info has no CA`);
  return ca.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? [];
}

/** `sha256:…` of the public key, which stays when the certificate is renewed. */
export function publicKeyHash(pem: string): string {
  const key = new X509Certificate(pem).publicKey.export({ type: "spki", format: "der" });
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}

/** Every authenticated user may create a SelfSubjectReview. */
async function checkToken({ server, token }: JoinOptions, ca: string, signal: AbortSignal): Promise<void> {
  const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const { status } = await sendRequest(server, { path, method: "POST", headers, body: "{}" }, { ca, signal });
  if (status !== 401) return;
  throw new Error(
    `Cannot join ${server}: it does not accept the token, or the token has expired; create another with svc token create`,
  );
}

async function readClusterInfo(server: string, trust: Trust): Promise<Readonly<Record<string, string>>> {
  const { status, body } = await sendRequest(server, { path: CLUSTER_INFO }, trust);
  try {
    if (status !== 200) throw new Error(`${CLUSTER_INFO} returned ${status}`);
    const { data } = JSON.parse(body) as { readonly data?: Readonly<Record<string, string>> };
    return data ?? {};
  } catch (cause) {
    throw new Error(`Cannot join ${server}: ${(cause as Error).message}`, { cause });
  }
}

interface JoinRequest {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface JoinResponse {
  readonly status: number;
  readonly body: string;
}

/** How the server's certificate is verified, and until when requests may last. */
type Trust = Pick<TlsIdentity, "ca" | "insecure"> & { readonly signal: AbortSignal };

async function sendRequest(
  server: string,
  request: JoinRequest,
  { signal, ...identity }: Trust,
): Promise<JoinResponse> {
  await using transport = externalTransport({ server, ...identity });
  const bounded = AbortSignal.any([AbortSignal.timeout(RESPONSE_TIMEOUT_MS), signal]);
  try {
    const { status, body } = await transport(makeRequest({ ...request, signal: bounded }));
    return { status, body: (await readAll(body, RESPONSE_BYTES_MAX)).toString() };
  } catch (cause) {
    throw new Error(`Cannot join ${server}: ${(cause as Error).message}`, { cause });
  }
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
