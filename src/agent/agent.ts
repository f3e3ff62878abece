/** Starts and stops the components of the node agent, in order. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { NetworkPolicies } from "../network-policy/network-policies.ts";
import { systemRandom } from "../std/crypto/random.ts";
import type { AgentConfig } from "./agent-config.ts";
import { openDns } from "./assembly/dns.ts";
import { createEvictionManager } from "./assembly/eviction.ts";
import { openForecast } from "./assembly/forecast.ts";
import { type AgentDeps, type Foundation, openFoundation } from "./assembly/foundation.ts";
import { createGarbageCollectors } from "./assembly/garbage-collectors.ts";
import { type LoopComponents, runLoops } from "./assembly/loops.ts";
import { openNetworkPolicies } from "./assembly/network-policies.ts";
import { openNode } from "./assembly/node.ts";
import { openPodNetwork } from "./assembly/pod-network.ts";
import { openPods } from "./assembly/pods.ts";
import { openProxy } from "./assembly/proxy.ts";
import { openReporting } from "./assembly/reporting.ts";
import { type NodeResources, openResourceManagers, serveResources } from "./assembly/resource-managers.ts";
import { openShutdownManager } from "./assembly/shutdown.ts";
import { rotateServingCertificate } from "./certificates/serving-certificate.ts";
import { EvictionRecords } from "./eviction/eviction-records.ts";
import { observeRotation } from "./metrics/certificate-metrics.ts";
import { createReviewMetrics } from "./metrics/review-metrics.ts";
import { checkMachine, setOomScore } from "./node/machine/machine-check.ts";
import { setOpenFilesMax } from "./node/machine/open-files.ts";
import { podsDir } from "./pods/directories.ts";
import { createAgentHandler } from "./server/agent-handler.ts";
import { type AgentServer, startAgentServer } from "./server/agent-server.ts";
import { createCgroupReader } from "./stats/cgroup-reader.ts";
import { createFigures } from "./stats/figures.ts";
import { OpenFiles } from "./stats/open-files.ts";
import { AgentTunnel } from "./tunnel/agent-tunnel.ts";
import { openTunnel } from "./tunnel/open-tunnel.ts";
import { createVolumeMeasure } from "./volumes/local/project-quotas.ts";

export type { AgentConfig } from "./agent-config.ts";

export interface RunningAgent {
  /** Where the HTTPS server listens; undefined when it is off. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
  /** See `AgentServer`. */
  readonly connect: AgentServer["connect"];
  /** Resolves when the node is registered and reported Ready for the first time; rejects if the agent closes before. */
  ready(): Promise<void>;
  /** Whether the agent works: the container runtime answers. */
  isHealthy(): boolean;
  /** With `runOnce`: resolves when the pods of the manifests run or have run; rejects with those that do not. */
  ranOnce(): Promise<void>;
  /** Containers keep running unless `stopPods`. Idempotent. */
  close(options?: { readonly stopPods?: boolean }): Promise<void>;
}

/** How long a stopping agent sends queued statuses and events. */
const FLUSH_MS = 2_000;

/**
 * Rejects with a message for the operator when the machine or the configuration does not allow a start, and when it is
 * stopped before it has started.
 */
export async function startAgent(config: AgentConfig, deps: AgentDeps): Promise<RunningAgent> {
  await checkMachine(config, deps.log);
  await setOomScore(config.runtime.oomScoreAdj, deps.log);
  await setOpenFilesMax(config.runtime.maxOpenFiles, deps.log);
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  stack.defer(() => stop.abort(new Error("the agent stops")));
  using _stopping = abortWhileStarting(deps.stopping, stop);
  await mkdir(podsDir(config), { recursive: true, mode: 0o750 });
  // Drivers mount both, and their manifests require that they exist.
  for (const name of ["plugins", "plugins_registry"])
    await mkdir(join(config.rootDir, name), { recursive: true, mode: 0o750 });
  stack.use(await deps.shareMounts?.(config.rootDir, deps.log));
  await mkdir(config.podLogsDir, { recursive: true, mode: 0o755 });
  const foundation = await openFoundation(config, deps, { signal: stop.signal, stack });
  const policies = await openNetworkPolicies(foundation, (text) =>
    components.reporting.recordNodeEvent("Warning", "NetworkPolicyFailed", text),
  );
  const workers = () => [...components.podComponents.pods.workers];
  const resources = await openResourceManagers(foundation, {
    workers,
    isReady: () => components.podComponents.sources.isReady,
    onDevicesChange: () => components.node.statusManager?.reportNow(),
  });
  const evictions = await EvictionRecords.open(config.rootDir, foundation.log.child("eviction"));
  const shutdown = await openShutdownManager(foundation, () => components);
  const isShuttingDown = () => shutdown?.isShuttingDown === true;
  const components = createComponents(foundation, policies, resources, { records: evictions, isShuttingDown });
  const { managers } = resources;
  const server = await openServer(foundation, components, deps.setVerbosity);
  components.address = server.address;
  components.tunnel = createTunnel(foundation, server, () => components.node.statusManager?.reportNow());
  await serveResources(foundation, managers, { workers });
  await openForecast(foundation, components);
  const { pods, volumes, runOnce: once, sources, statics } = components.podComponents;
  // These reject when the node cannot do what its configuration requires.
  await volumes.drivers.recover();
  await components.node.cgroups.enforceReservations();
  await components.node.cgroups.moveProcesses();
  const dns = await openDns(foundation, components.reporting, deps.dnsPort);
  const proxy = await openProxy(foundation);
  const podNetwork = await openPodNetwork(foundation, components.reporting);
  const running = Promise.all([
    runLoops(foundation, components, managers),
    components.tunnel?.run(foundation.signal),
    shutdown?.run(foundation.signal),
  ]);
  const owned = stack.move();
  let closing: Promise<void> | undefined;
  return {
    address: server.address,
    connect: server.connect,
    ready: () => components.node.statusManager?.ready ?? Promise.resolve(),
    isHealthy: () => components.podComponents.relister.problem === undefined,
    ranOnce: () =>
      once.wait({
        clock: foundation.clock,
        signal: foundation.signal,
        pods: () => (sources.isReady ? statics.pods : undefined),
        problems: () => statics.problems,
      }),
    close: (options = {}) => {
      closing ??= (async () => {
        const graceSeconds = config.pods.shutdownGraceSeconds;
        const hasPods = pods.pods.length > 0 || components.podComponents.relister.pods.size > 0;
        await pods.close({ stopPods: options.stopPods === true, graceSeconds });
        await dns?.close({ removeAddresses: options.stopPods === true });
        // Pods that keep running need the rules, as they need their network.
        await proxy?.close({ removeRules: options.stopPods === true || !hasPods });
        await policies?.close({ removeRules: options.stopPods === true || !hasPods });
        const removeRoutes = options.stopPods === true || !hasPods;
        await podNetwork?.close({ removeRoutes, removeConfig: options.stopPods === true });
        await components.reporting.status?.flush(FLUSH_MS);
        stop.abort(new Error("the agent stops"));
        await running;
        await owned.disposeAsync();
      })();
      return closing;
    },
  };
}

function abortWhileStarting(stopping: AbortSignal | undefined, stop: AbortController): Disposable {
  const pass = (): void => stop.abort(stopping?.reason);
  stopping?.addEventListener("abort", pass);
  if (stopping?.aborted) pass();
  return { [Symbol.dispose]: () => stopping?.removeEventListener("abort", pass) };
}

interface AgentComponents extends LoopComponents {
  address: RunningAgent["address"];
  tunnel: AgentTunnel | undefined;
}

/** The node's status needs the pods, and pods need the node: the closures resolve the cycle. */
function createComponents(
  foundation: Foundation,
  policies: NetworkPolicies | undefined,
  resources: NodeResources,
  { records, isShuttingDown }: { readonly records: EvictionRecords; readonly isShuttingDown: () => boolean },
): AgentComponents {
  const reporting = openReporting(foundation);
  const pressures = () => components.eviction.conditions;
  const node = openNode(foundation, reporting, {
    port: () => components.address?.port ?? 0,
    relistProblem: () => components.podComponents.relister.problem,
    manifestProblems: () => components.podComponents.statics.problems,
    tunnel: () => components.tunnel?.condition,
    volumesInUse: () => components.podComponents.volumes.attachments.inUse,
    devices: () => resources.managers.devices.getCapacity(),
    nodeChanged: () => components.podComponents.volumes.attachments.nodeChanged(),
    pressures,
    isShuttingDown,
  });
  const podComponents = openPods(foundation, reporting, node, policies, resources, { pressures, records });
  const garbage = createGarbageCollectors(foundation, podComponents, reporting);
  const components: AgentComponents = {
    reporting,
    node,
    podComponents,
    garbage,
    eviction: createEvictionManager(foundation, { reporting, node, podComponents, records, reclaimers: garbage }),
    evictionRecords: records,
    address: undefined,
    tunnel: undefined,
  };
  return components;
}

/** Undefined without `--tunnel`. Throws a message for the operator when nothing could pass through it. */
function createTunnel(
  { config, credentials, clock, log, metrics }: Foundation,
  { address }: AgentServer,
  onChange: () => void,
): AgentTunnel | undefined {
  if (!config.server.tunnel) return undefined;
  if (credentials === undefined) throw new Error("Cannot use --tunnel without --svcconfig or --join");
  if (address === undefined) throw new Error("Cannot use --tunnel with --enable-server=false");
  return new AgentTunnel({
    open: (signal) => openTunnel(config.nodeName, credentials(), clock, signal),
    target: { host: LOOPBACK[address.host] ?? address.host, port: address.port },
    clock,
    random: systemRandom,
    log: log.child("tunnel"),
    metrics,
    onChange,
  });
}

/** Where a listener on all addresses is connected to. */
const LOOPBACK: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

async function openServer(
  foundation: Foundation,
  { node, podComponents: ofPods }: AgentComponents,
  setVerbosity: AgentDeps["setVerbosity"],
): Promise<AgentServer> {
  const { config, client, clock, log, signal, stack } = foundation;
  const { pods, relister, metrics, services } = ofPods;
  const { machine, tree, cri, images } = foundation;
  const files = stack.use(new OpenFiles(clock));
  const { hierarchy } = tree;
  const { observability } = config;
  const figures = createFigures(metrics, {
    nodeName: config.nodeName,
    pods: () => pods.workers,
    settings: config.runtime,
    cgroups: createCgroupReader(hierarchy, foundation.isUnified, clock, {
      ...observability,
      readFile: (path) => files.read(path),
    }),
    machine,
    runtime: cri.runtime,
    images: images.images,
    volumes: services.volumes,
    measureVolume: createVolumeMeasure(foundation.quotas),
    runtimeMeasures: config.runtime.measuresPods,
    volumeHealth: ofPods.volumeHealth,
    volumeStatsMs: config.volumes.statsMs,
    rootDir: config.rootDir,
    podLogsDir: config.podLogsDir,
    clock,
  });
  const server = stack.use(
    await startAgentServer({
      config,
      pods,
      client,
      clock,
      log: log.child("server"),
      ips: foundation.ips.current,
      problems: () => (relister.problem === undefined ? [] : [`pleg: ${relister.problem}`]),
      removedLogs: ofPods.removedLogs,
      figures,
      tracer: foundation.tracer,
      reviews: createReviewMetrics(metrics.registry, clock),
      setVerbosity,
    }),
  );
  if (config.certificates.rotateServing && client !== undefined) {
    const use = server.useCertificate;
    const serving = { config, client, names: node.servingNames, clock, log: log.child("certificates"), use };
    const rotation = observeRotation(metrics.registry, clock, "server");
    stack.use(rotateServingCertificate({ ...serving, metrics: rotation }, signal));
  }
  const debugging = config.server.debuggingHandlers;
  const { removedLogs } = ofPods;
  const shown = { pods, clock, authenticate: undefined, problems: () => [], configz: {}, debugging, removedLogs };
  await foundation.standalone?.listen(createAgentHandler(shown));
  return server;
}
