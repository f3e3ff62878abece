/**
 * The whole cluster in one process. Start: keys, then API server with its controllers, and beside these the container
 * runtime; when both are there, the agent. Stop: the other way round.
 */
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type RunningAgent, startAgent } from "../agent/agent.ts";
import type { AgentConfig } from "../agent/agent-config.ts";
import { defaultAgentConfig } from "../agent/options.ts";
import type { ApiServerConfig } from "../apiserver/config/config.ts";
import { defaultConfig } from "../apiserver/config/default-config.ts";
import { type RunningApiServer, startApiServer } from "../apiserver/server.ts";
import { makeRequest } from "../http/request.ts";
import { explainAddressInUse } from "../http/server/address-in-use.ts";
import { waitForAbort } from "../std/async/wait-for-abort.ts";
import { makeDirectory } from "../std/fs/make-directory.ts";
import { type PodRuntime, type RuntimeDeps, openRuntime } from "./containerd/runtime.ts";
import { lockDataDir } from "./host/data-dir-lock.ts";
import { bootstrapUser, prepareNodeIdentity } from "./node/node-identity.ts";
import { localServerUrl, type UpOptions } from "./options.ts";
import { adminConfigFile, renewKeys, openClusterKeys } from "./pki/cluster-keys.ts";
import type { Pki } from "./pki/pki.ts";

export interface ClusterDeps extends RuntimeDeps {
  /** What clients are told at `/version`: `v1.33.0+svc.1.2.3`. */
  readonly version: string;
}

export interface RunningCluster {
  readonly svcconfig: string;
  readonly runtime: string;
  /** Whether the API server says it lives. */
  healthy(): Promise<boolean>;
  /** Idempotent. Pods are stopped too when the options say so. */
  close(): Promise<void>;
}

/**
 * Resolves when the node is ready for pods, which may never be. Rejects with an operator's message, or with the
 * signal's reason when it aborts first; then nothing is left running.
 */
export async function startCluster(
  options: UpOptions,
  deps: ClusterDeps,
  signal: AbortSignal,
): Promise<RunningCluster> {
  const { dataDir, runDir } = options;
  await makeDirectory(dataDir, 0o711);
  await makeDirectory(runDir, 0o711);
  await using stack = new AsyncDisposableStack();
  stack.use(await lockDataDir(dataDir));
  await warnAboutSwap(deps);
  const [runtimeStart, serverStart] = await Promise.allSettled([
    openRuntime(options, deps),
    startServer(options, deps),
  ]);
  const runtime = runtimeStart.status === "fulfilled" ? stack.use(runtimeStart.value) : undefined;
  const server = serverStart.status === "fulfilled" ? serverStart.value : undefined;
  if (server !== undefined) {
    stack.defer(() => server.api.close());
    stack.use(renewKeys(options, deps));
  }
  if (runtimeStart.status === "rejected") throw runtimeStart.reason;
  if (serverStart.status === "rejected") throw serverStart.reason;
  await prepareNode(options, server!, deps);
  const agent = await explainAddressInUse(
    "--agent-port",
    startAgent(agentConfig(options, server!.pki, runtime!.endpoint), deps),
  );
  stack.defer(() => agent.close());
  await waitUnlessAborted(agent.ready(), signal);
  const owned = stack.move();
  let closing: Promise<void> | undefined;
  return {
    svcconfig: adminConfigFile(options),
    runtime: runtime!.description,
    healthy: () => isHealthy(server!.api),
    close: () => {
      closing ??= stop(options, agent, runtime!, owned);
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

/** Sockets and what containers leave empty. Where something is still mounted below, nothing is touched. */
async function removeRunDir(runDir: string): Promise<void> {
  const mounts = await readFile("/proc/self/mountinfo", "utf8");
  if (!mounts.includes(` ${runDir}/`)) await rm(runDir, { recursive: true, force: true });
}

async function startServer(
  options: UpOptions,
  deps: ClusterDeps,
): Promise<{ readonly api: RunningApiServer; readonly pki: Pki }> {
  const pki = await openClusterKeys(options, deps);
  const api = await startApiServer(serverConfig(options, pki, deps.version), deps);
  return { api, pki };
}

async function prepareNode(
  options: UpOptions,
  { api, pki }: { readonly api: RunningApiServer; readonly pki: Pki },
  { clock, log }: ClusterDeps,
): Promise<void> {
  const { nodeName, controllers } = options;
  const isKnown = await prepareNodeIdentity({
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
  if (!isKnown) log.info("The node is new, or has another name than before", { node: nodeName });
}

function nodeConfigFile({ dataDir }: UpOptions): string {
  return join(dataDir, "node.svcconfig");
}

/** What the node's agent begins with. */
function bootstrapConfigFile({ dataDir }: UpOptions): string {
  return join(dataDir, "bootstrap.svcconfig");
}

function agentCertDir({ dataDir }: UpOptions): string {
  return join(dataDir, "agent", "pki");
}

/** Of nodes, which renew them in time. */
const CLIENT_CERTIFICATE_MS = 31_536_000_000;

/** What the API server of the cluster is told. */
export function serverConfig(options: UpOptions, pki: Pki, version: string): ApiServerConfig {
  return {
    ...defaultConfig,
    bindAddress: options.bindAddress,
    securePort: options.securePort,
    serving: { ...defaultConfig.serving, certificate: pki.apiServer, certDir: join(options.dataDir, "apiserver") },
    authentication: {
      ...defaultConfig.authentication,
      clientCaFile: pki.caFile,
      bootstrapTokens: true,
      serviceAccounts: {
        ...defaultConfig.authentication.serviceAccounts,
        generatedKeyFile: join(options.dataDir, "pki", "service-account.key"),
      },
    },
    authorizationModes: ["Node", "RBAC"],
    storage: { ...defaultConfig.storage, url: `level://${join(options.dataDir, "kvstore")}` },
    agents: {
      ...defaultConfig.agents,
      clientCertificate: pki.agentClient,
      certificateAuthorityFile: pki.agentCaFile,
      preferredAddressTypes: ["InternalIP", "Hostname"],
    },
    // No service proxy need run on this host.
    admission: { ...defaultConfig.admission, enabled: ["NodeRestriction"], disabled: [], serviceEndpoints: true },
    gitVersion: version,
    embeddedControllers: options.controllers,
    signing: { clients: pki.authority, nodeServing: pki.agentAuthority, lifetimeMs: CLIENT_CERTIFICATE_MS },
    clusterCa: pki.ca,
  };
}

/** How long the agent takes the API server's word for whose token is whose. */
const TOKEN_CACHE_MS = 120_000;

/** What the node agent of the cluster is told; `endpoint` is the container runtime's. */
export function agentConfig(options: UpOptions, pki: Pki, endpoint: string): AgentConfig {
  const base = defaultAgentConfig(options.nodeName);
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
      // A cluster of one is for machines as they are.
      failSwapOn: false,
      failCgroupV1: false,
    },
    node: { ...base.node, ips: options.nodeIps },
    server: {
      ...base.server,
      port: options.agentPort,
      readOnlyPort: 0,
      // The API server's health covers both: they are one process.
      healthzPort: 0,
      // The API server, and whose tokens it knows; what they may do it says as well.
      clientCaFile: pki.agentCaFile,
      anonymousAuth: false,
      tokenCacheMs: TOKEN_CACHE_MS,
      authorization: { ...base.server.authorization, mode: "Webhook" },
    },
  };
}

async function isHealthy(api: RunningApiServer): Promise<boolean> {
  const { status } = await api.handler(makeRequest({ method: "GET", path: "/livez" }));
  return status === 200;
}

async function warnAboutSwap({ log }: ClusterDeps): Promise<void> {
  const swaps = await readFile("/proc/swaps", "utf8").catch(() => "");
  if (swaps.trim().split("\n").length > 1) log.warn("Swap is on: what pods are promised of memory may be slow memory");
}
