/**
 * A cluster in one process. It starts the keys and then the API server with its controllers, in parallel with the
 * container runtime, then the agent, and stops them in reverse order.
 */
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type RunningAgent, startAgent } from "../agent/agent.ts";
import type { AgentConfig } from "../agent/agent-config.ts";
import { agentFlags } from "../agent/flags.ts";
import { defaultAgentConfig } from "../agent/options.ts";
import { shareMounts } from "../agent/volumes/mount/shared-mounts.ts";
import type { ApiServerConfig } from "../apiserver/config/config.ts";
import { createDefaultConfig } from "../apiserver/config/default-config.ts";
import { ENFORCE_POLICIES } from "../apiserver/control-plane/node-bootstrap.ts";
import { apiserverFlags } from "../apiserver/flags/flags.ts";
import type { LocalAgent } from "../apiserver/proxy/local-agent.ts";
import { type RunningApiServer, startApiServer } from "../apiserver/server.ts";
import { createClient } from "../client/api-client.ts";
import type { ControllerOptions } from "../controllers/controller-options.ts";
import { singleAuthority } from "../controllers/signing-authorities.ts";
import { makeRequest } from "../http/request.ts";
import { explainAddressInUse } from "../http/server/address-in-use.ts";
import { formatDuration } from "../schema/value/time.ts";
import { waitForAbort } from "../std/async/wait-for-abort.ts";
import { makeDirectory } from "../std/fs/make-directory.ts";
import type { LogOptions } from "../std/log/logger.ts";
import { GIT_VERSION } from "../std/version.ts";
import { cniDirectories, openRuntime, type PodRuntime, type RuntimeDeps } from "./containerd/runtime.ts";
import { lockDataDir } from "./host/data-dir-lock.ts";
import { isInside } from "./node/address-ranges.ts";
import { dnsServiceUser, ensureDnsService } from "./node/dns-service.ts";
import { bootstrapUser, prepareNodeIdentity } from "./node/node-identity.ts";
import { localServerUrl, type UpOptions } from "./options.ts";
import { adminConfigFile, openClusterKeys, renewKeys } from "./pki/cluster-keys.ts";
import { FRONT_PROXY, type Pki } from "./pki/pki.ts";

export interface ClusterDeps extends RuntimeDeps {
  /** The options of the log, for threads of the API server. */
  readonly logOptions?: Partial<LogOptions> | undefined;
  /** The version at `/version`: `v1.33.0+svc.1.2.3`. */
  readonly version: string;
}

export interface RunningCluster {
  readonly svcconfig: string;
  readonly runtime: string;
  /** Whether `/livez` of the API server succeeds. */
  healthy(): Promise<boolean>;
  /** Drops what caches can create again. */
  releaseMemory(): void;
  /** Idempotent. Stops pods too if the options include it. */
  close(): Promise<void>;
}

/**
 * Resolves when the node is ready for pods, however long that takes. Rejects with an error for the operator, or with
 * the signal's reason when it aborts first; then nothing keeps running.
 */
export async function startCluster(
  options: UpOptions,
  deps: ClusterDeps,
  signal: AbortSignal,
): Promise<RunningCluster> {
  const { dataDir, runDir } = options;
  await makeDirectory(dataDir, 0o711);
  const madeRunDir = await makeDirectory(runDir, 0o711);
  await using stack = new AsyncDisposableStack();
  let isStarted = false;
  stack.defer(async () => {
    if (!isStarted && madeRunDir !== undefined) await removeRunDir(runDir);
  });
  stack.use(await lockDataDir(dataDir));
  await warnAboutSwap(deps);
  let agent: RunningAgent | undefined;
  const connect: LocalAgent["connect"] = (certificates) => agent?.connect(certificates);
  const [runtimeStart, serverStart] = await Promise.allSettled([
    openRuntime(options, deps, signal),
    startServer(options, deps, { nodeName: options.nodeName, connect }),
  ]);
  const runtime = runtimeStart.status === "fulfilled" ? stack.use(runtimeStart.value) : undefined;
  const server = serverStart.status === "fulfilled" ? serverStart.value : undefined;
  if (server !== undefined) {
    stack.defer(() => server.api.close());
    stack.use(renewKeys(options, deps));
  }
  if (runtimeStart.status === "rejected") throw runtimeStart.reason;
  if (serverStart.status === "rejected") throw serverStart.reason;
  await Promise.all([prepareNode(options, server!, deps), reserveDnsAddress(options, server!.api, deps)]);
  const started = await explainAddressInUse(
    "--agent-port",
    startAgent(withReportedVersion(agentConfig(options, server!.pki, runtime!.endpoint), deps.version), {
      ...deps,
      shareMounts,
      importedImages: runtime!.importedImages,
    }),
  );
  agent = started;
  stack.defer(() => started.close());
  await waitUnlessAborted(started.ready(), signal);
  isStarted = true;
  const owned = stack.move();
  let closing: Promise<void> | undefined;
  return {
    svcconfig: adminConfigFile(options),
    runtime: runtime!.description,
    healthy: () => isHealthy(server!.api),
    releaseMemory: () => server!.api.releaseMemory(),
    close: () => {
      closing ??= stop(options, started, runtime!, owned);
      return closing;
    },
  };
}

async function waitUnlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const stop = new AbortController();
  try {
    await Promise.race([work, waitForAbort(AbortSignal.any([signal, stop.signal]))]);
    signal.throwIfAborted();
  } finally {
    stop.abort();
  }
}

async function stop(
  options: UpOptions,
  agent: RunningAgent,
  runtime: PodRuntime,
  owned: AsyncDisposableStack,
): Promise<void> {
  try {
    await agent.close({ stopPods: options.stopPods });
    if (options.stopPods) await runtime.removeNetwork();
  } finally {
    await owned.disposeAsync();
  }
  if (options.stopPods) await removeRunDir(options.runDir);
}

/** Removes sockets and empty directories of containers. With a mount inside, the directory stays. */
async function removeRunDir(runDir: string): Promise<void> {
  const mounts = await readFile("/proc/self/mountinfo", "utf8");
  if (!mounts.includes(` ${runDir}/`)) await rm(runDir, { recursive: true, force: true });
}

async function startServer(
  options: UpOptions,
  deps: ClusterDeps,
  localAgent: LocalAgent,
): Promise<{ readonly api: RunningApiServer; readonly pki: Pki }> {
  const pki = await openClusterKeys(options, deps);
  const api = await startApiServer(serverConfig(options, pki, deps.version), { ...deps, localAgent });
  return { api, pki };
}

async function prepareNode(
  options: UpOptions,
  { api, pki }: { readonly api: RunningApiServer; readonly pki: Pki },
  { clock, log }: ClusterDeps,
): Promise<void> {
  const { nodeName, controllers } = options;
  const hasCertificate = await prepareNodeIdentity({
    nodeName,
    server: localServerUrl(options),
    ca: pki.ca,
    agentCa: pki.agentCa,
    token: api.loopbackToken(bootstrapUser),
    svcconfig: nodeConfigFile(options),
    bootstrapSvcconfig: bootstrapConfigFile(options),
    certDir: agentCertDir(options),
    pkiDirectory: join(options.dataDir, "pki"),
    controllers,
    now: clock.now(),
  });
  if (!hasCertificate) log.info("The node is new or was renamed; its agent requests a certificate", { node: nodeName });
}

async function reserveDnsAddress(options: UpOptions, api: RunningApiServer, { log }: ClusterDeps): Promise<void> {
  const [address = ""] = options.clusterDns;
  const block = `${address}/${address.includes(":") ? 128 : 32}`;
  if (options.dns === undefined || !options.serviceCidrs.some((range) => isInside(block, range))) return;
  const headers = { authorization: `Bearer ${api.loopbackToken(dnsServiceUser)}` };
  const client = createClient({ transport: api.handler, headers, userAgent: "svc-up" });
  await ensureDnsService(client, address, log);
}

function nodeConfigFile({ dataDir }: UpOptions): string {
  return join(dataDir, "node.svcconfig");
}

/** The connection file with which the node's agent requests its first certificate. */
function bootstrapConfigFile({ dataDir }: UpOptions): string {
  return join(dataDir, "bootstrap.svcconfig");
}

function agentCertDir({ dataDir }: UpOptions): string {
  return join(dataDir, "agent", "pki");
}

/** The configuration of the cluster's API server. */
export function serverConfig(options: UpOptions, pki: Pki, version: string): ApiServerConfig {
  const base = createDefaultConfig(options.featureGates);
  return {
    ...base,
    apis: { ...base.apis, runtimeConfig: options.runtimeConfig },
    bindAddress: options.bindAddress,
    securePort: options.securePort,
    workers: options.workers,
    serving: { ...base.serving, certificate: pki.apiServer, certDir: join(options.dataDir, "apiserver") },
    authentication: {
      ...base.authentication,
      clientCaFile: pki.caFile,
      bootstrapTokens: true,
      requestHeader: {
        caFile: pki.frontProxyCaFile,
        allowedNames: [FRONT_PROXY],
        usernames: ["X-Remote-User"],
        uids: ["X-Remote-Uid"],
        groups: ["X-Remote-Group"],
        extraPrefixes: ["X-Remote-Extra-"],
      },
      serviceAccounts: {
        ...base.authentication.serviceAccounts,
        generatedKeyFile: join(options.dataDir, "pki", "service-account.key"),
      },
    },
    proxyClientCertificate: pki.frontProxyClient,
    services: { ...base.services, clusterIpRanges: options.serviceCidrs },
    authorizationModes: ["Node", "RBAC"],
    storage: {
      ...base.storage,
      urls: [`level://${join(options.dataDir, "kvstore")}`],
      quotaBytes: options.storeQuotaBytes,
    },
    agents: {
      ...base.agents,
      clientCertificate: pki.agentClient,
      certificateAuthorityFile: pki.agentCaFile,
      preferredAddressTypes: ["InternalIP", "Hostname"],
    },
    // Webhooks and extension servers are called at their endpoints, because this host may run no service proxy.
    admission: { ...base.admission, enabled: ["NodeRestriction"], disabled: [], serviceEndpoints: true },
    gitVersion: version,
    embeddedControllers: options.controllers,
    localPathClass: true,
    controllerOptions: nodeCidrOptions(options),
    signing: {
      ...singleAuthority(pki.authority, apiserverFlags["cluster-signing-duration"].default),
      nodeServing: pki.agentAuthority,
    },
    clusterCa: pki.ca,
    agentFlags: joinFlags(options),
  };
}

/** The flags by which nodes that join have the same network as this one. */
function joinFlags(options: UpOptions): readonly string[] {
  const { clusterDns, clusterDomain, clusterCidrs, dns, proxyTable, podNetwork, networkPolicy } = options;
  const needsRange = proxyTable !== undefined || podNetwork !== "none";
  return [
    `--cluster-dns=${clusterDns.join(",")}`,
    `--cluster-domain=${clusterDomain}`,
    ...(dns === undefined ? [] : ["--serve-dns"]),
    ...(proxyTable === undefined ? [] : ["--service-proxy"]),
    ...(podNetwork === "none" ? [] : [`--pod-network=${podNetwork}`]),
    ...(networkPolicy.isEnabled ? [ENFORCE_POLICIES] : []),
    ...(needsRange ? [`--cluster-cidr=${clusterCidrs.join(",")}`] : []),
  ];
}

/** This node has the range of its bridge; other nodes get ranges of the same size. */
function nodeCidrOptions({ nodeName, podCidr, clusterCidrs, serviceCidrs }: UpOptions): Partial<ControllerOptions> {
  const lengths = [podCidr, ...clusterCidrs.filter((range) => !range.includes(":"))].map(
    (range) => range.split("/")[1],
  );
  const nodeCidrMaskSizes = { ipv4: Math.max(...lengths.map(Number)), ipv6: 64 };
  return { clusterCidrs, serviceCidrs, nodeCidrMaskSizes, nodeCidrs: { [nodeName]: [podCidr] } };
}

const TOKEN_CACHE_MS = agentFlags["authentication-token-webhook-cache-ttl"].default;

/** The version that `--version=v…` sets is the agent's as well as the API server's. */
function withReportedVersion(config: AgentConfig, version: string): AgentConfig {
  return version === GIT_VERSION ? config : { ...config, version };
}

/** The configuration of the cluster's node agent; `endpoint` is the socket of the container runtime. */
export function agentConfig(options: UpOptions, pki: Pick<Pki, "agentCaFile">, endpoint: string): AgentConfig {
  const base = defaultAgentConfig(options.nodeName, options.featureGates);
  const rootDir = join(options.dataDir, "agent");
  return {
    ...base,
    rootDir,
    podLogsDir: options.podLogsDir,
    certDir: agentCertDir(options),
    svcconfig: nodeConfigFile(options),
    certificates: { bootstrapSvcconfig: bootstrapConfigFile(options), rotateClient: true, rotateServing: true },
    runtime: {
      ...base.runtime,
      endpoint,
      imageEndpoint: endpoint,
      // A single-node cluster also runs on hosts with swap or cgroup v1.
      failSwapOn: false,
      failCgroupV1: false,
    },
    node: { ...base.node, ips: options.nodeIps },
    pods: { ...base.pods, clusterDns: options.clusterDns, clusterDomain: options.clusterDomain },
    dns: options.dns,
    proxy: options.proxyTable === undefined ? undefined : proxyConfig(options, options.proxyTable),
    podNetwork: podNetworkConfig(options),
    networkPolicy: { ...options.networkPolicy, isOptional: true },
    server: {
      ...base.server,
      port: options.agentPort,
      readOnlyPort: 0,
      // The API server's health check covers this process.
      healthzPort: 0,
      // The API server authenticates and authorizes the clients of the agent.
      clientCaFile: pki.agentCaFile,
      anonymousAuth: false,
      tokenCacheMs: TOKEN_CACHE_MS,
      authorization: { ...base.server.authorization, mode: "Webhook" },
    },
    configz: mergeSettings(base.configz, shownSettings(options, pki, endpoint)),
  };
}

function mergeSettings(all: object, own: ReturnType<typeof shownSettings>): object {
  const { authorization = {} } = all as { readonly authorization?: object };
  return { ...all, ...own, authorization: { ...authorization, ...own.authorization } };
}

/** The settings of `agentConfig` as fields of an agent's configuration file. */
function shownSettings(options: UpOptions, { agentCaFile }: Pick<Pki, "agentCaFile">, endpoint: string) {
  return {
    podLogsDir: options.podLogsDir,
    rotateCertificates: true,
    serverTLSBootstrap: true,
    containerRuntimeEndpoint: endpoint,
    imageServiceEndpoint: endpoint,
    failSwapOn: false,
    failCgroupV1: false,
    clusterDNS: options.clusterDns,
    clusterDomain: options.clusterDomain,
    port: options.agentPort,
    readOnlyPort: 0,
    healthzPort: 0,
    authentication: {
      x509: { clientCAFile: agentCaFile },
      webhook: { enabled: true, cacheTTL: formatDuration(BigInt(TOKEN_CACHE_MS) * 1_000_000n) },
      anonymous: { enabled: false },
    },
    authorization: { mode: "Webhook" },
  };
}

function podNetworkConfig(options: UpOptions): AgentConfig["podNetwork"] {
  const { podNetwork: mode, clusterCidrs, networkNames: names, runtimeEndpoint } = options;
  const { confDir, leaseDir } = cniDirectories(options);
  return {
    mode,
    clusterCidrs,
    names,
    hairpin: true,
    confDir: runtimeEndpoint === undefined ? confDir : undefined,
    leaseDir,
    isOptional: true,
  };
}

function proxyConfig({ clusterCidrs, serviceCidrs }: UpOptions, table: string): AgentConfig["proxy"] {
  return { clusterCidrs, serviceCidrs, table, isOptional: true };
}

async function isHealthy(api: RunningApiServer): Promise<boolean> {
  const { status } = await api.handler(makeRequest({ method: "GET", path: "/livez" }));
  return status === 200;
}

async function warnAboutSwap({ log }: ClusterDeps): Promise<void> {
  const swaps = await readFile("/proc/swaps", "utf8").catch(() => "");
  if (swaps.trim().split("\n").length > 1) log.warn("Swap is enabled: memory that pods request may be swapped out");
}
