/** The components of pods: their sources, services and workers, and the relisting of the runtime. */
import { serviceKind } from "../../api/core/service/kind.ts";
import type { NetworkPolicies } from "../../network-policy/network-policies.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { NodeObjects } from "../checkpoint/node-objects.ts";
import type { EvictionLinks } from "../eviction/eviction-records.ts";
import { RemovedLogs } from "../logs/removed-logs.ts";
import { AgentMetrics } from "../metrics/agent-metrics.ts";
import { registerUnusedOperations } from "../metrics/unused-operations.ts";
import type { PluginSocketObserver } from "../plugins/plugin-watcher.ts";
import { ObjectReader } from "../pod-objects/object-reader.ts";
import { RuntimeClasses } from "../pod-objects/runtime-classes.ts";
import type { PodServices } from "../pods/pod-context.ts";
import { allContainers, podUid } from "../pods/pod-fields.ts";
import { PodManager } from "../pods/pod-manager.ts";
import { Relister } from "../runtime/relister.ts";
import { PodSources } from "../sources/pod-sources.ts";
import { StaticPods } from "../sources/static-pods.ts";
import { RunOnce } from "../standalone/run-once.ts";
import { VolumeHealth } from "../volumes/csi/volume-health.ts";
import { VolumePlugins } from "../volumes/drivers/volume-plugins.ts";
import { systemMounter } from "../volumes/mount/mounter.ts";
import type { Foundation } from "./foundation.ts";
import type { NodeComponents } from "./node.ts";
import { createPodServices } from "./pod-services.ts";
import type { Reporting } from "./reporting.ts";
import type { NodeResources } from "./resource-managers.ts";

export interface PodComponents {
  readonly pods: PodManager;
  readonly services: PodServices;
  readonly volumes: VolumePlugins;
  /** Undefined: the conditions of volumes are not read. */
  readonly volumeHealth: VolumeHealth | undefined;
  readonly relister: Relister;
  readonly statics: StaticPods;
  readonly sources: PodSources;
  readonly runOnce: RunOnce;
  readonly metrics: AgentMetrics;
  readonly removedLogs: RemovedLogs;
  /** Reads the runtime's name, which is part of every container's ID. */
  readRuntimeName(): Promise<void>;
}

export function openPods(
  foundation: Foundation,
  reporting: Reporting,
  node: NodeComponents,
  networkPolicies: NetworkPolicies | undefined,
  resources: NodeResources,
  evictions: EvictionLinks,
): PodComponents {
  const { config, clock, log, client, checkpoint, signal } = foundation;
  const resourceManagers = resources.managers;
  const { status, mirrors } = reporting;
  const random = systemRandom;
  const metrics = openMetrics(foundation);
  const changed = (uid: string): void => pods.onRuntimeChange(uid);
  const reader = foundation.stack.use(
    new ObjectReader({
      client,
      services: foundation.informers?.of(serviceKind),
      clock,
      random,
      log: log.child("objects"),
      onChange: changed,
      cacheTtlMs: cacheTtlMs(config.pods.changeDetection, node),
    }),
  );
  const statics = openStatics(foundation, reporting, () => pods);
  const objects = new NodeObjects({ reader, staticPods: statics, checkpoint });
  const { pluginHandlers } = resources;
  const volumes = openVolumes(foundation, reporting, node, {
    reader,
    objects,
    pods: () => pods,
    pluginHandlers,
    pluginObserver: metrics.plugins,
  });
  let runtimeName = "containerd";
  const services = createPodServices(
    { ...foundation, networkPolicies, resourceManagers, classes: new RuntimeClasses(client) },
    {
      events: reporting.podEvents,
      recordNodeEvent: reporting.recordNodeEvent,
      objects,
      claims: reader,
      drivers: volumes.drivers,
      accounts: reader,
      runtimeName: () => runtimeName,
      changed,
      expectChange: () => relister.requestRelist(),
      finished: (pod) => status?.onPodFinished(pod),
      active: () => pods.active,
      assigned: () => pods.assigned,
      terminate: (uid, termination) => pods.terminate(uid, termination),
      onProbe: metrics.onProbe,
      measureCgroup: metrics.measureCgroup,
      workerMetrics: metrics.workers,
      onPreempted: (resource) => metrics.onPreempted(resource),
      volumeMetrics: metrics.volumes,
      credentialMetrics: metrics.credentialPlugins,
      onPulled: (...pulled) => metrics.onPulled(...pulled),
      node: () => node.nodeObject.read(),
      pressures: evictions.pressures,
      isShuttingDown: node.isShuttingDown,
    },
  );
  const runOnce = new RunOnce();
  const pods = new PodManager({
    services,
    onRestart: (pod) => metrics.onRestart(pod),
    onOrphan: () => metrics.onOrphan(),
    onOrphanedVolumes: (removed, failed) => metrics.onOrphanedVolumes(removed, failed),
    isAbsentFromRuntime: (uid) => relister.isAbsent(uid),
    findListed: (uid) => relister.findPod(uid),
    findTermination: (pod) => evictions.records.findTermination(pod),
    onStatus(pod, state) {
      if (config.sources.runOnce) runOnce.setPhase(pod, state);
      const uid = podUid(pod);
      metrics.onStatus(pod, state);
      reporting.setPodStatus(pod, state, !pods.isDesired(uid) && pods.worker(uid)?.stateName === "terminated");
    },
    onRemoved(pod) {
      metrics.onRemoved(pod);
      resourceManagers.release(podUid(pod));
      networkPolicies?.removePod(podUid(pod));
      reporting.removePod(pod);
    },
  });
  const { statsMs, health } = config.volumes;
  const volumeHealth =
    health && statsMs !== undefined
      ? new VolumeHealth({
          pods: () => pods.workers,
          readCondition: (...volume) => services.volumes.readCondition(...volume),
          events: reporting.podEvents,
          periodMs: statsMs,
          clock,
          log: log.child("volumes"),
        })
      : undefined;
  const { runtime } = foundation.cri;
  const onChange = (uid: string, ...listing: [digest: string, listedAt: number]): boolean =>
    pods.compareListing(uid, ...listing);
  const relisterOptions = { runtime, clock, log: log.child("relist"), onChange, metrics: metrics.relist, signal };
  const relister = new Relister(relisterOptions);
  metrics.observe(pods, relister);
  foundation.runtimeMetrics.findRole = (uid = "", name) => {
    const worker = pods.worker(uid);
    return worker && allContainers(worker.pod).find(({ spec }) => spec.name === name)?.role;
  };
  const api = client && status && mirrors && checkpoint && { client, status, mirrors, checkpoint };
  const sources = new PodSources({
    config,
    clock,
    random,
    log,
    pods,
    relister,
    objects,
    staticPods: statics,
    api,
    signal,
  });
  const readRuntimeName = async (): Promise<void> => {
    runtimeName = (await runtime.version({}, signal)).runtimeName ?? runtimeName;
  };
  const removedLogs = new RemovedLogs(log.child("logs"));
  const parts = { pods, services, volumes, volumeHealth, relister, statics, sources, runOnce };
  return { ...parts, metrics, removedLogs, readRuntimeName };
}

function openMetrics({ config, clock, metrics, isUnified, client, stack }: Foundation): AgentMetrics {
  const { nodeName, version, observability } = config;
  const { features } = observability;
  registerUnusedOperations(metrics, client !== undefined);
  return stack.use(new AgentMetrics({ registry: metrics, nodeName, version, isUnified, features, clock }));
}

/** Annotation that limits the age of cached ConfigMaps and Secrets in large clusters. */
const TTL = "node.alpha.kubernetes.io/ttl";
const TTL_SECONDS = 60;

/** Undefined: the objects that pods refer to are watched. */
function cacheTtlMs(
  strategy: Foundation["config"]["pods"]["changeDetection"],
  { nodeObject }: NodeComponents,
): (() => Promise<number>) | undefined {
  if (strategy === "Watch") return undefined;
  if (strategy === "Get") return async () => 0;
  return async () => {
    const { metadata } = await nodeObject.read();
    const seconds = Number(metadata?.annotations?.[TTL] ?? TTL_SECONDS);
    return 1000 * (Number.isInteger(seconds) ? seconds : TTL_SECONDS);
  };
}

function openStatics(
  foundation: Foundation,
  { mirrors, recordNodeEvent }: Reporting,
  pods: () => PodManager,
): StaticPods {
  return new StaticPods({
    nodeName: foundation.config.nodeName,
    clock: foundation.clock,
    log: foundation.log.child("manifests"),
    onPut(pod) {
      mirrors?.put(pod);
      pods().put(pod);
    },
    onDelete: (pod) => pods().delete(podUid(pod)),
    onObjects: (objects) => foundation.standalone?.putManifestObjects(objects),
    onProblem: (text) => recordNodeEvent("Warning", "FailedValidation", `Error in manifest ${text}`),
  });
}

interface VolumeLinks {
  readonly reader: ObjectReader;
  readonly objects: NodeObjects;
  readonly pods: () => PodManager;
  readonly pluginHandlers: NodeResources["pluginHandlers"];
  readonly pluginObserver: PluginSocketObserver;
}

function openVolumes(
  foundation: Foundation,
  reporting: Reporting,
  node: NodeComponents,
  links: VolumeLinks,
): VolumePlugins {
  const { config, client, clock, log } = foundation;
  const { reader, objects, pods, pluginHandlers, pluginObserver } = links;
  return new VolumePlugins({
    directories: config,
    nodeName: config.nodeName,
    ...config.volumes,
    client,
    clock,
    random: systemRandom,
    log: log.child("volumes"),
    mounter: systemMounter,
    events: reporting.podEvents,
    secret: (namespace, name) => objects.secret(namespace, name),
    tokens: objects,
    claims: reader,
    pluginHandlers,
    pluginObserver,
    node: () => node.nodeObject.read(),
    onInUseChange: () => node.statusManager?.reportNow(),
    retryPod: (uid) => pods().onRuntimeChange(uid),
    retryAllPods() {
      for (const worker of pods().workers) worker.onRuntimeChange();
    },
  });
}
