/** The node agent put together: start order and drain order. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Node, NodeStatus } from "../api/core/node.ts";
import type { Pod } from "../api/core/pod.ts";
import { createClient } from "../client/api-client.ts";
import type { Client, Transport } from "../client/client.ts";
import { createEventRecorder, type EventRecorder } from "../client/event-recorder.ts";
import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import { systemRandom } from "../std/random.ts";
import type { AgentConfig } from "./agent-config.ts";
import { openConnection } from "./bootstrap.ts";
import { keepServingCertificate, ServingNames } from "./certificates/serving-certificate.ts";
import { CgroupTree } from "./cgroups/cgroup-tree.ts";
import { type CallSystemd, SystemdSlices } from "./cgroups/systemd-slices.ts";
import { Checkpoint } from "./checkpoint/checkpoint.ts";
import { NodeObjects } from "./checkpoint/node-objects.ts";
import { openPlugins, type Plugins } from "./images/credential-providers.ts";
import { limitedTransport } from "./limited-transport.ts";
import { checkMachine, machineFacts, setOomScore } from "./machine-check.ts";
import { type NodeCapacity, nodeCapacity } from "./node/capacity.ts";
import { pressuresOf } from "./node/conditions.ts";
import { storageExcess } from "./node/local-storage.ts";
import { type MachineInfo, readMachine, readUsage } from "./node/machine.ts";
import { NodeCgroups } from "./node/node-cgroups.ts";
import { type NodeEvent, SchedulableTeller, tellOfMachine } from "./node/node-events.ts";
import { NodeIps } from "./node/node-ips.ts";
import { NodeKeeper } from "./node/node-keeper.ts";
import { machineLabels, nodeStatus } from "./node/node-status.ts";
import { OwnNode } from "./node/own-node.ts";
import { ObjectReader } from "./objects.ts";
import { makeServices, nodeReference, podEvents } from "./pod-services.ts";
import { podsDir } from "./pods/directories.ts";
import { rotateLogs } from "./pods/log-rotation.ts";
import { isStatic, podUid } from "./pods/pod-fields.ts";
import { PodManager } from "./pods/pod-manager.ts";
import { RunOnce } from "./run-once.ts";
import { type CriClient, createCriClient } from "./runtime/cri.ts";
import { followEvents } from "./runtime/event-stream.ts";
import { Relister } from "./runtime/events.ts";
import { RuntimeClasses } from "./runtime-classes.ts";
import { agentHandler } from "./server/agent-handler.ts";
import { startAgentServer } from "./server/agent-server.ts";
import { MirrorPods } from "./sources/mirror-pods.ts";
import { PodSources } from "./sources/pod-sources.ts";
import { StaticPods } from "./sources/static-pods.ts";
import { type MakeNodeApi, Standalone } from "./standalone/standalone.ts";
import { StatusManager } from "./status/status-manager.ts";
import { systemMounter } from "./volumes/mounter.ts";
import { NodeVolumes } from "./volumes/node-volumes.ts";
import { diskUsage, enforceSizeLimits } from "./volumes/size-limits.ts";

export type { AgentConfig } from "./agent-config.ts";

export interface AgentDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** To the API server; made from `svcconfig` when absent. */
  readonly transport?: Transport;
  /** In place of the one at the configured endpoints; not closed by the agent. */
  readonly runtime?: Pick<CriClient, "runtime" | "images"> & Partial<Pick<CriClient, "events">>;
  /** In place of the machine's. */
  readonly cgroupHierarchy?: string;
  /** In place of the machine's, with `cgroupDriver` systemd. */
  readonly callSystemd?: CallSystemd;
  /** For a node without API server to answer clients by; it answers none when absent. */
  readonly nodeApi?: () => Promise<MakeNodeApi>;
}

export interface RunningAgent {
  /** Where the HTTPS server listens; undefined when it is off. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
  /** Resolves when the node is registered and reported Ready for the first time; rejects if the agent closes before. */
  ready(): Promise<void>;
  /** With `runOnce`: resolves when the pods of the manifests run or have run; rejects with what does not. */
  ranOnce(): Promise<void>;
  /** Containers keep running unless `stopPods`. Idempotent. */
  close(options?: { readonly stopPods?: boolean }): Promise<void>;
}

/** Name under which the agent's events appear. */
const COMPONENT = "svclet";
/** Statuses and events that wait get this long when the agent stops. */
const FLUSH_MS = 2_000;

/** Rejects with an operator's message when the machine or the configuration does not allow a start. */
export async function startAgent(config: AgentConfig, deps: AgentDeps): Promise<RunningAgent> {
  await checkMachine(config, deps.log);
  await setOomScore(config.runtime.oomScoreAdj, deps.log);
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  stack.defer(() => stop.abort(new Error("the agent stops")));
  await mkdir(podsDir(config), { recursive: true, mode: 0o750 });
  await mkdir(config.podLogsDir, { recursive: true, mode: 0o755 });
  const machine = await readMachine();
  const ips = await NodeIps.open(config.node.ips);
  const capacity = nodeCapacity(machine, await readUsage(config.rootDir), config.node);
  const cri = deps.runtime ?? stack.use(createCriClient({ ...criOptions(config), clock: deps.clock }));
  const isOne = deps.runtime !== undefined || config.runtime.imageEndpoint === config.runtime.endpoint;
  const images = isOne ? cri : stack.use(imagesOf(config, deps));
  const tree = new CgroupTree(deps.cgroupHierarchy ?? "/sys/fs/cgroup");
  const isSystemd = config.runtime.cgroupDriver === "systemd";
  const slices = isSystemd ? new SystemdSlices(await tree.isUnified(), deps.callSystemd) : undefined;
  const plugins = await openPlugins(config.runtime.credentialProviders);
  const client = await connect(config, deps, stack, stop.signal);
  const directory = join(config.rootDir, "checkpoint");
  const checkpoint =
    client && stack.use(await Checkpoint.open({ directory, clock: deps.clock, log: deps.log.child("checkpoint") }));
  const standalone = client === undefined ? await openStandalone(config, deps, stack) : undefined;
  const parts = assemble({
    standalone,
    config,
    deps,
    machine,
    ips,
    capacity,
    cri,
    images,
    tree,
    slices,
    plugins,
    client,
    checkpoint,
    signal: stop.signal,
    stack,
  });
  const server = stack.use(
    await startAgentServer({
      config,
      pods: parts.pods,
      client,
      clock: deps.clock,
      log: deps.log.child("server"),
      ips: ips.known,
      problems: () => (parts.relister.healthy ? [] : ["pleg: container runtime does not answer"]),
    }),
  );
  parts.address = server.address;
  if (config.certificates.rotateServing && client !== undefined) {
    const log = deps.log.child("certificates");
    const serving = { config, client, names: parts.names, clock: deps.clock, log, use: server.useCertificate };
    stack.use(keepServingCertificate(serving, stop.signal));
  }
  await standalone?.listen(
    agentHandler({
      pods: parts.pods,
      clock: deps.clock,
      authenticate: undefined,
      problems: () => [],
      configz: {},
      debugging: config.server.debuggingHandlers,
    }),
  );
  await parts.prepare();
  const running = parts.run();
  const owned = stack.move();
  let closing: Promise<void> | undefined;
  return {
    address: server.address,
    ready: () => parts.ready(),
    ranOnce: () => parts.ranOnce(),
    close: (options = {}) => {
      closing ??= (async () => {
        const graceSeconds = config.pods.shutdownGraceSeconds;
        await parts.pods.close({ stopPods: options.stopPods === true, graceSeconds });
        await parts.status?.flush(FLUSH_MS);
        stop.abort(new Error("the agent stops"));
        await running;
        await owned.disposeAsync();
      })();
      return closing;
    },
  };
}

function criOptions(config: AgentConfig): { readonly endpoint: string; readonly requestTimeoutMs: number } {
  return { endpoint: config.runtime.endpoint, requestTimeoutMs: config.runtime.requestTimeoutMs };
}

function imagesOf(config: AgentConfig, deps: AgentDeps): CriClient {
  const { imageEndpoint: endpoint, requestTimeoutMs } = config.runtime;
  return createCriClient({ endpoint, requestTimeoutMs, clock: deps.clock });
}

async function connect(
  config: AgentConfig,
  deps: AgentDeps,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Client | undefined> {
  const { contentType, ...limits } = config.api;
  const clientOf = (transport: Transport): Client =>
    createClient({ transport: limitedTransport({ transport, clock: deps.clock, ...limits, signal }), contentType });
  if (config.sources.runOnce) return undefined;
  if (deps.transport !== undefined) return clientOf(deps.transport);
  if (config.svcconfig === undefined) return undefined;
  const { svcconfig } = config;
  const log = deps.log.child("certificates");
  const { transport } = stack.use(await openConnection({ ...config, svcconfig }, deps.clock, log, signal));
  return clientOf(transport);
}

/** Where there is no API server and a server of the agent's own is wanted. */
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

interface Assembly {
  readonly config: AgentConfig;
  readonly deps: AgentDeps;
  readonly machine: MachineInfo;
  readonly ips: NodeIps;
  readonly capacity: NodeCapacity;
  readonly cri: Pick<CriClient, "runtime"> & Partial<Pick<CriClient, "events">>;
  readonly images: Pick<CriClient, "images">;
  readonly tree: CgroupTree;
  readonly slices: SystemdSlices | undefined;
  /** Undefined: no plugin knows credentials. */
  readonly plugins: Plugins | undefined;
  readonly client: Client | undefined;
  /** Where the node shows itself when there is no API server. */
  readonly standalone: Standalone | undefined;
  /** Undefined: there is no API server. */
  readonly checkpoint: Checkpoint | undefined;
  readonly signal: AbortSignal;
  readonly stack: AsyncDisposableStack;
}

interface Parts {
  readonly pods: PodManager;
  readonly relister: Relister;
  readonly status: StatusManager | undefined;
  readonly names: ServingNames;
  address: { readonly host: string; readonly port: number } | undefined;
  /** Rejects with what keeps the node from doing what it was told. */
  prepare(): Promise<void>;
  ready(): Promise<void>;
  ranOnce(): Promise<void>;
  /** Resolves when the signal aborted and every loop has ended. */
  run(): Promise<void>;
}

function assemble(at: Assembly): Parts {
  const { config, deps, client, standalone, signal, stack, machine } = at;
  /** Who is told of the node itself and of events. */
  const teller = client ?? standalone?.client;
  const { clock, log } = deps;
  const random = systemRandom;
  const recorder = teller && stack.use(recorderOf(config, deps, teller));
  const tellOfNode: NodeEvent = (...event) => recorder?.record(nodeReference(config.nodeName), ...event);
  const schedulable = new SchedulableTeller(tellOfNode);
  const status = client && stack.use(new StatusManager({ client, clock, random, log: log.child("status-manager") }));
  const objects = stack.use(
    new ObjectReader({ client, clock, random, log: log.child("objects"), onChange: (uid) => pods.changed(uid) }),
  );
  const mirrors =
    client &&
    status &&
    stack.use(new MirrorPods({ client, clock, random, log: log.child("mirror"), nodeName: config.nodeName, status }));
  const statics = new StaticPods({
    nodeName: config.nodeName,
    clock,
    log: log.child("manifests"),
    onPut(pod) {
      mirrors?.want(pod);
      pods.put(pod);
    },
    onDelete: (pod) => pods.delete(podUid(pod)),
    onObjects: (objects) => standalone?.showObjects(objects),
    onProblem: (text) => tellOfNode("Warning", "FailedValidation", `Error in manifest ${text}`),
  });
  const names = new ServingNames();
  const own = stack.use(
    new OwnNode({
      client,
      clock,
      random,
      log: log.child("own-node"),
      initial: initialNode(at),
      onChange(node) {
        names.note(node);
        volumes.attachments.nodeChanged();
        schedulable.seen(node);
      },
    }),
  );
  let reported: NodeStatus | undefined;
  let runtimeName = "containerd";
  const noteRuntime = async (): Promise<void> => {
    runtimeName = (await at.cri.runtime.version({}, signal)).runtimeName ?? runtimeName;
  };
  const nodeObjects = new NodeObjects({ reader: objects, statics, checkpoint: at.checkpoint });
  const volumes: NodeVolumes = new NodeVolumes({
    directories: config,
    nodeName: config.nodeName,
    ...config.volumes,
    client,
    clock,
    random,
    log: log.child("volumes"),
    mounter: systemMounter,
    events: podEvents(recorder),
    secret: (namespace, name) => nodeObjects.secret(namespace, name),
    tokens: nodeObjects,
    claims: objects,
    node: () => own.read(),
    onUse: () => keeper?.reportSoon(),
    changed: (uid) => pods.changed(uid),
    anyChanged() {
      for (const worker of pods.workers) worker.changed();
    },
  });
  const services = makeServices(
    {
      ...at,
      clock,
      log,
      classes: new RuntimeClasses(client),
    },
    {
      events: podEvents(recorder),
      objects: nodeObjects,
      claims: objects,
      drivers: volumes.drivers,
      accounts: objects,
      runtimeName: () => runtimeName,
      changed: (uid) => pods.changed(uid),
      expectChange: () => relister.poke(),
      finished: (pod) => status?.finished(pod),
      active: () => pods.active,
      end: (uid, termination) => pods.end(uid, termination),
      node: () => own.read(),
      pressures: () => pressuresOf(reported),
    },
  );
  const cgroups = new NodeCgroups({
    settings: config.runtime,
    capacity: at.capacity.capacity,
    tree: at.tree,
    slices: at.slices,
    event: tellOfNode,
    clock,
    log: log.child("cgroups"),
    signal,
  });
  const once = new RunOnce();
  const pods = new PodManager({
    services,
    onStatus(pod, state) {
      if (config.sources.runOnce) once.note(pod, state);
      standalone?.show(pod, state);
      if (!isStatic(pod)) status?.set(pod, state);
      // The last that is told of a static pod that goes is how its containers stopped.
      else if (pods.isWanted(podUid(pod)) || pods.worker(podUid(pod))?.stateName !== "terminated") {
        mirrors?.report(pod, state);
      }
    },
    onGone(pod) {
      standalone?.hide(pod);
      if (isStatic(pod)) mirrors?.release(pod);
      else status?.forget(podUid(pod));
    },
  });
  const relister = new Relister({
    runtime: at.cri.runtime,
    clock,
    log: log.child("relist"),
    onChange: (uid, digest) => pods.listed(uid, digest),
    signal,
  });
  const sources = new PodSources({
    config,
    clock,
    random,
    log,
    pods,
    relister,
    objects: nodeObjects,
    statics,
    api: client && status && mirrors && at.checkpoint && { client, status, mirrors, checkpoint: at.checkpoint },
    signal,
  });
  const keeper =
    teller &&
    new NodeKeeper({
      client: teller,
      clock,
      random,
      log: log.child("node"),
      nodeName: config.nodeName,
      // Nobody but the agent makes the node's object where it shows itself.
      config: standalone === undefined ? config.node : { ...config.node, register: true },
      ownLabels: machineLabels(machine, config.nodeName),
      controllerAttach: config.volumes.controllerAttach,
      status: async (previous) => {
        reported = await nodeStatus(statusOptions, previous);
        return reported;
      },
      event: tellOfNode,
      signal,
    });
  const parts: Parts = {
    pods,
    relister,
    status,
    names,
    address: undefined,
    async prepare() {
      await volumes.drivers.recover();
      await cgroups.enforceReservations();
      await cgroups.place();
    },
    ready: () => keeper?.ready ?? Promise.resolve(),
    ranOnce: () =>
      once.done({
        clock,
        signal,
        pods: () => (sources.isComplete ? statics.pods : undefined),
        problems: () => statics.problems,
      }),
    async run() {
      tellOfNode("Normal", "Starting", "Starting svclet.");
      await tellOfMachine(await machineFacts(config, machine), tellOfNode);
      await noteRuntime().catch(() => undefined);
      const { logMaxFiles: maxFiles, logMaxBytes: maxBytes, logMonitorMs: periodMs } = config.pods;
      const rotation = {
        runtime: at.cri.runtime,
        clock,
        log: log.child("logs"),
        pods,
        maxFiles,
        maxBytes,
        periodMs,
        signal,
      };
      const loops: Promise<unknown>[] = [relister.run(), rotateLogs(rotation), cgroups.run(), volumes.run(signal)];
      if (keeper !== undefined) loops.push(keeper.run());
      const { events } = at.cri;
      const look = () => relister.poke();
      if (events !== undefined) loops.push(followEvents({ events, clock, random, log, onEvent: look, signal }));
      loops.push(sources.run());
      if (config.pods.localStorageIsolation) {
        const { volumes, events } = services;
        const storage = { runtime: at.cri.runtime, volumes, directories: config, usage: diskUsage };
        const limits = {
          excess: (pod: Pod) => storageExcess(storage, pod),
          pods: () => pods.workers,
          volumes,
          events,
          clock,
          log,
          usage: diskUsage,
          signal,
        };
        loops.push(enforceSizeLimits(limits));
      }
      await Promise.all(loops);
    },
  };
  const statusOptions = {
    config,
    machine,
    runtime: at.cri.runtime,
    images: at.images.images,
    ips: () => at.ips.look(),
    port: () => parts.address?.port ?? 0,
    relistHealthy: () => relister.healthy,
    manifestProblems: () => statics.problems,
    now: () => clock.now(),
    volumesInUse: () => volumes.attachments.inUse,
  };
  return parts;
}

/** The node as it is before the API server says more. */
function initialNode({ config, machine, capacity }: Assembly): Node {
  const { nodeName: name, node } = config;
  const labels = { ...machineLabels(machine, name), ...node.labels };
  const { allocatable } = capacity;
  return {
    metadata: { name, labels },
    spec: { taints: node.taints as NonNullable<Node["spec"]>["taints"] },
    status: { allocatable },
  };
}

function recorderOf(config: AgentConfig, { clock, log }: AgentDeps, client: Client): EventRecorder {
  const { eventQps: qps, eventBurst: burst } = config.pods;
  const host = config.nodeName;
  return createEventRecorder({ client, clock, random: systemRandom, log, component: COMPONENT, host, qps, burst });
}
