/** What all other components of the agent use: the machine, the runtime, and the API server or its replacement. */
import { join } from "node:path";
import { createClient } from "../../client/api-client.ts";
import type { Client, Transport } from "../../client/client.ts";
import { createSharedInformers, type SharedInformers } from "../../client/informer/shared-informers.ts";
import { createRateLimitedTransport } from "../../client/transport/rate-limited-transport.ts";
import { createRateLimitObserver, withClientMetrics } from "../../http/client-metrics.ts";
import type { NetworkHost } from "../../pod-network/pod-network.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { MetricRegistry, SHOW_ALL } from "../../std/metrics/metrics.ts";
import type { Nft } from "../../std/nftables/nft.ts";
import type { Clock } from "../../std/time/clock.ts";
import { currentSpan, inClientSpan } from "../../tracing/span.ts";
import type { Tracer } from "../../tracing/tracer.ts";
import type { AgentConfig } from "../agent-config.ts";
import { type Connection, openConnection } from "../api-server/bootstrap.ts";
import { CgroupTree } from "../cgroups/cgroup-tree.ts";
import { type CallSystemd, SystemdSlices } from "../cgroups/systemd-slices.ts";
import { Checkpoint } from "../checkpoint/checkpoint.ts";
import { type CredentialPlugins, loadPlugins } from "../images/credential-providers.ts";
import type { PullRecords } from "../images/pull-records/pull-records.ts";
import { observeRotation } from "../metrics/certificate-metrics.ts";
import { RuntimeMetrics } from "../metrics/runtime-metrics.ts";
import { type MachineInfo, readMachine, readUsage } from "../node/machine/machine.ts";
import { type Iptables, systemIptables } from "../node/network/iptables-chains.ts";
import { keepNetworkFields } from "../node/network/network-objects.ts";
import { NodeIps } from "../node/network/node-ips.ts";
import type { ShutdownNotices } from "../node/shutdown/shutdown-notices.ts";
import { computeNodeCapacity, type NodeCapacity } from "../node/status/capacity.ts";
import type { MemoryQos } from "../pods/resources/container-resources.ts";
import { type MachineTopology, readMachineTopology } from "../resource-managers/topology/machine-topology.ts";
import { readCgroupDriver } from "../runtime/cgroup-driver.ts";
import { type CriClient, createCriClient } from "../runtime/cri-client.ts";
import { type MakeNodeApi, Standalone } from "../standalone/standalone.ts";
import { openMonitoringQuotas, type ProjectQuotas } from "../volumes/local/project-quotas.ts";

/** The minor version of Kubernetes that defines the metrics. */
const MINOR = 33;

export interface AgentDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborts when the agent is stopped before it has started; later `close` stops it. */
  readonly stopping?: AbortSignal;
  /** Transport to the API server; made from `svcconfig` when absent. */
  readonly transport?: Transport;
  /** Sets the verbosity of the log at run time; undefined: it stays. */
  readonly setVerbosity?: (level: number) => void;
  /** Replaces the runtime at the configured endpoints; the agent does not close it. */
  readonly runtime?: Pick<CriClient, "runtime" | "images"> & Partial<Pick<CriClient, "events">>;
  /** Replaces `/sys` for the CPUs and the NUMA nodes. */
  readonly sysRoot?: string;
  /** Replaces the machine's. */
  readonly cgroupHierarchy?: string;
  /** Replaces the machine's, with `cgroupDriver` systemd. */
  readonly callSystemd?: CallSystemd;
  /** Replaces the machine's. */
  readonly shutdownNotices?: ShutdownNotices;
  /** Replaces the machine's. */
  readonly iptables?: Iptables;
  /** Replaces the machine's nftables for the service proxy. */
  readonly nft?: Nft;
  /** Replaces the machine's programs for the pod network. */
  readonly network?: NetworkHost;
  /** Names of images that were imported from files, which garbage collection keeps. */
  readonly importedImages?: readonly string[];
  /** Replaces 53. */
  readonly dnsPort?: number;
  /** Serves clients of a node without API server; undefined: it serves none. */
  readonly nodeApi?: () => Promise<MakeNodeApi>;
  /** Shares the mounts below the root directory with containers; undefined: they stay as they are. */
  readonly shareMounts?: (directory: string, log: Logger) => Promise<AsyncDisposable>;
}

/** Aborts and disposes what the agent opens. */
export interface Lifetime {
  readonly signal: AbortSignal;
  readonly stack: AsyncDisposableStack;
}

export interface Foundation extends Lifetime {
  readonly config: AgentConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly machine: MachineInfo;
  readonly topology: MachineTopology;
  readonly ips: NodeIps;
  readonly capacity: NodeCapacity;
  readonly cri: Pick<CriClient, "runtime"> & Partial<Pick<CriClient, "events">>;
  readonly images: Pick<CriClient, "images">;
  readonly tree: CgroupTree;
  /** Served at `/metrics`. */
  readonly metrics: MetricRegistry;
  readonly runtimeMetrics: RuntimeMetrics;
  /** Undefined: no traces are exported. */
  readonly tracer: Tracer | undefined;
  /** Whether the machine uses cgroup v2. */
  readonly isUnified: boolean;
  /** See `ResourceSettings`; likewise below. */
  readonly oomGroup: boolean;
  readonly limitsSwap: boolean;
  readonly memoryQos: MemoryQos | undefined;
  readonly iptables: Iptables;
  /** Undefined: the machine's. */
  readonly nft: Nft | undefined;
  readonly network: NetworkHost | undefined;
  readonly shutdownNotices: ShutdownNotices | undefined;
  /** Undefined: systemd does not manage the cgroups. */
  readonly slices: SystemdSlices | undefined;
  readonly importedImages: readonly string[];
  /** Undefined: directories are measured by their files. */
  readonly quotas: ProjectQuotas | undefined;
  /** Undefined: there are no credential plugins. */
  readonly plugins: CredentialPlugins | undefined;
  /** Undefined: every pod may use the images that are present. */
  readonly pullRecords: PullRecords | undefined;
  /** Undefined: there is no API server. */
  readonly client: Client | undefined;
  /** Undefined: there is no API server. */
  readonly informers: SharedInformers | undefined;
  /** The credentials for the API server; undefined: there is none, or it runs in this process. */
  readonly credentials: Connection["credentials"] | undefined;
  /** Undefined: there is no API server. */
  readonly checkpoint: Checkpoint | undefined;
  /** Serves the node's objects when there is no API server. */
  readonly standalone: Standalone | undefined;
}

/** Rejects with a message for the operator when the machine does not support the configuration. */
export async function openFoundation(
  configured: AgentConfig,
  deps: AgentDeps,
  lifetime: Lifetime,
): Promise<Foundation> {
  const { clock, log } = deps;
  const { stack } = lifetime;
  // Disposed last, with the spans of what ends before.
  const tracer = await openTracer(configured, deps);
  if (tracer !== undefined) stack.use(tracer);
  const { machine, topology } = await readHardware(configured, deps.sysRoot);
  const ips = await NodeIps.open(configured.node.ips);
  const capacity = computeNodeCapacity(machine, await readUsage(configured.rootDir), configured.node);
  const { hiddenMetrics: showHidden } = configured.observability;
  const isHidden = (since: string): boolean => Number(since.split(".")[1]) < MINOR;
  const metrics = new MetricRegistry({ ...SHOW_ALL, showHidden, isHidden });
  const runtimeMetrics = new RuntimeMetrics(metrics, clock);
  const runtimes = measureRuntimes(
    deps.runtime === undefined ? connectRuntime(configured, clock, stack, tracer) : toRuntimes(deps.runtime),
    runtimeMetrics,
  );
  const config = await adoptCgroupDriver(configured, runtimes.cri.runtime, deps, lifetime.signal);
  const tree = new CgroupTree(deps.cgroupHierarchy ?? "/sys/fs/cgroup");
  const isSystemd = config.runtime.cgroupDriver === "systemd";
  const isUnified = await tree.isUnified();
  const slices = isSystemd ? new SystemdSlices(isUnified, deps.callSystemd) : undefined;
  const oomGroup = isUnified && config.runtime.singleProcessOomKill !== true;
  const limitsSwap = await tree.limitsSwap();
  const { memoryThrottlingFactor: throttlingFactor } = config.runtime;
  const { memoryBytes: allocatableBytes } = capacity;
  const memoryQos = isUnified && throttlingFactor !== undefined ? { throttlingFactor, allocatableBytes } : undefined;
  const plugins = await loadPlugins(config.runtime.credentialProviders);
  const pullRecords = await openPullRecords(config, runtimes.images, deps);
  const { client, credentials } = await connectApiServer(config, deps, lifetime, metrics);
  const random = systemRandom;
  const informers =
    client &&
    stack.use(
      createSharedInformers(
        { client, clock, random, log: log.child("informers"), transform: keepNetworkFields },
        lifetime.signal,
      ),
    );
  const directory = join(config.rootDir, "checkpoint");
  const checkpoint = client && stack.use(await Checkpoint.open({ directory, clock, log: log.child("checkpoint") }));
  const standalone = client === undefined ? await openStandalone(config, deps, stack) : undefined;
  const { iptables = systemIptables, nft, network, shutdownNotices } = deps;
  const host = {
    machine,
    topology,
    ips,
    capacity,
    tree,
    metrics,
    runtimeMetrics,
    tracer,
    isUnified,
    oomGroup,
    limitsSwap,
    memoryQos,
    slices,
    iptables,
    nft,
    network,
    shutdownNotices,
    plugins,
    pullRecords,
    importedImages: deps.importedImages ?? [],
    quotas: config.volumes.quotaMonitoring ? openMonitoringQuotas(log) : undefined,
  };
  const api = { client, informers, credentials, checkpoint, standalone };
  return { ...lifetime, ...host, ...runtimes, ...api, config, clock, log };
}

async function openPullRecords(
  { rootDir, runtime }: AgentConfig,
  { images }: Pick<CriClient, "images">,
  { clock, log }: AgentDeps,
): Promise<PullRecords | undefined> {
  if (runtime.pullVerification === undefined) return undefined;
  const { PullRecords } = await import("../images/pull-records/pull-records.ts");
  return await PullRecords.open({
    config: runtime.pullVerification,
    rootDir,
    images,
    clock,
    log: log.child("pull-records"),
  });
}

/** The runtime's cgroup driver replaces that of the configuration. */
async function adoptCgroupDriver(
  config: AgentConfig,
  runtime: Foundation["cri"]["runtime"],
  { clock, log }: AgentDeps,
  signal: AbortSignal,
): Promise<AgentConfig> {
  if (!config.runtime.adoptsCgroupDriver) return config;
  const driver = await readCgroupDriver({ runtime, clock, log: log.child("runtime"), signal });
  return driver === undefined ? config : { ...config, runtime: { ...config.runtime, cgroupDriver: driver } };
}

/** The topology is empty where nothing is placed by it. The CPUs of sysfs count where containers get their own. */
async function readHardware(
  { resources: { cpu, memory, topology: alignment } }: AgentConfig,
  sysRoot = "/sys",
): Promise<Pick<Foundation, "machine" | "topology">> {
  const machine = await readMachine();
  const isPlaced = cpu.policy !== "none" || memory.policy !== "None" || alignment.policy !== "none";
  if (!isPlaced) return { machine, topology: { cpus: [], numaNodes: [] } };
  const topology = await readMachineTopology(sysRoot, machine.memoryBytes);
  if (cpu.policy === "none") return { machine, topology };
  return { machine: { ...machine, cpus: topology.cpus.length }, topology };
}

async function openTracer({ tracing, nodeName }: AgentConfig, { clock, log }: AgentDeps): Promise<Tracer | undefined> {
  if (tracing === undefined) return undefined;
  const { Tracer } = await import("../../tracing/tracer.ts");
  const resource = { "service.name": "svclet", "host.name": nodeName };
  return new Tracer(tracing, { clock, log: log.child("tracing"), resource });
}

type Runtimes = Pick<Foundation, "cri" | "images">;

function toRuntimes(runtime: NonNullable<AgentDeps["runtime"]>): Runtimes {
  return { cri: runtime, images: runtime };
}

function measureRuntimes({ cri, images }: Runtimes, metrics: RuntimeMetrics): Runtimes {
  return {
    cri: { ...cri, runtime: metrics.measureRuntime(cri.runtime) },
    images: { images: metrics.measureImages(images.images) },
  };
}

function connectRuntime(
  config: AgentConfig,
  clock: Clock,
  stack: AsyncDisposableStack,
  tracer: Tracer | undefined,
): Runtimes {
  const { endpoint, imageEndpoint, requestTimeoutMs } = config.runtime;
  const cri = stack.use(createCriClient({ endpoint, requestTimeoutMs, clock, tracer }));
  if (imageEndpoint === endpoint) return toRuntimes(cri);
  return { cri, images: stack.use(createCriClient({ endpoint: imageEndpoint, requestTimeoutMs, clock, tracer })) };
}

/** Requests that a span makes have a span of their own, which connects those of the API server. */
function withTracing(transport: Transport, host: string): Transport {
  return (request) => {
    if (currentSpan() === undefined) return transport(request);
    const url = `https://${host}${request.path}`;
    return inClientSpan(request.method, url, (headers) =>
      transport({ ...request, headers: { ...request.headers, ...headers } }),
    );
  };
}

async function connectApiServer(
  config: AgentConfig,
  deps: AgentDeps,
  { signal, stack }: Lifetime,
  metrics: MetricRegistry,
): Promise<Pick<Foundation, "client" | "credentials">> {
  const { clock, log } = deps;
  const { contentType, streamsLists, cbor, ...limits } = config.api;
  const createLimitedClient = (connected: Transport, host: string): Client => {
    const measured = withClientMetrics(connected, metrics, () => host, clock);
    const transport = config.tracing === undefined ? measured : withTracing(measured, host);
    const onDelay = createRateLimitObserver(metrics, () => host);
    return createClient({
      transport: createRateLimitedTransport({ transport, clock, ...limits, signal, onDelay }),
      contentType,
      streamsLists,
      cbor,
    });
  };
  const none = { client: undefined, credentials: undefined };
  if (config.sources.runOnce) return none;
  if (deps.transport !== undefined) return { ...none, client: createLimitedClient(deps.transport, "") };
  if (config.svcconfig === undefined) return none;
  const { svcconfig } = config;
  const { transport, host, credentials } = stack.use(
    await openConnection({ ...config, svcconfig }, clock, log.child("certificates"), signal, () =>
      observeRotation(metrics, clock, "client"),
    ),
  );
  return { client: createLimitedClient(transport, host), credentials };
}

/** Undefined unless there is no API server and the agent's server is enabled. */
async function openStandalone(
  config: AgentConfig,
  { clock, log, nodeApi }: AgentDeps,
  stack: AsyncDisposableStack,
): Promise<Standalone | undefined> {
  if (nodeApi === undefined || config.sources.runOnce || !config.server.enabled) return undefined;
  const makeApi = await nodeApi();
  const options = { config, makeApi, clock, random: systemRandom, log: log.child("standalone") };
  return stack.use(await Standalone.open(options));
}
