/** Creates the services that all pods share. */

import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ObjectReference } from "../../api/core/references/object-reference.ts";
import type { EventRecorder, RecordOptions } from "../../client/events/event-recorder.ts";
import type { NetworkPolicies } from "../../network-policy/network-policies.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Tracer } from "../../tracing/tracer.ts";
import type { AgentConfig } from "../agent-config.ts";
import type { CgroupTree } from "../cgroups/cgroup-tree.ts";
import type { SystemdSlices } from "../cgroups/systemd-slices.ts";
import type { NodeObjects } from "../checkpoint/node-objects.ts";
import {
  type CredentialPluginObserver,
  type CredentialPlugins,
  CredentialProviders,
} from "../images/credential-providers.ts";
import { ImageManager, type ImageManagerOptions } from "../images/image-manager.ts";
import { readNodeCredentials } from "../images/node-credentials.ts";
import type { PullRecords } from "../images/pull-records/pull-records.ts";
import type { MeasureCgroup } from "../metrics/agent-metrics.ts";
import type { MachineInfo } from "../node/machine/machine.ts";
import type { NodeIps } from "../node/network/node-ips.ts";
import type { RecordNodeEvent } from "../node/node-events.ts";
import type { NodeCapacity } from "../node/status/capacity.ts";
import type { ObjectReader } from "../pod-objects/object-reader.ts";
import type { RuntimeClasses } from "../pod-objects/runtime-classes.ts";
import { PodAdmitter, type PodAdmitterOptions } from "../pods/admission/pod-admitter.ts";
import type { Directories } from "../pods/directories.ts";
import type { NodeInfo } from "../pods/environment/downward-api.ts";
import type { PodServices, PodWorkMetrics } from "../pods/pod-context.ts";
import type { EventType, PodEventRecorder } from "../pods/pod-events.ts";
import { isStatic, podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import type { MemoryQos } from "../pods/resources/container-resources.ts";
import { PodCgroups } from "../pods/resources/pod-cgroups.ts";
import { readHostIdRange, UserNamespaces } from "../pods/sandbox/user-namespaces.ts";
import { isCpuBusy, StartLimiter } from "../pods/worker/start-limiter.ts";
import { ProbeManager } from "../probes/probe-manager.ts";
import type { ProberOptions } from "../probes/prober.ts";
import type { ResourceManagers } from "../resource-managers/resource-managers.ts";
import type { CriClient } from "../runtime/cri-client.ts";
import type { ClaimSource } from "../volumes/claims.ts";
import type { DriverVolumes } from "../volumes/drivers/driver-volumes.ts";
import type { ProjectQuotas } from "../volumes/local/project-quotas.ts";
import { systemMounter } from "../volumes/mount/mounter.ts";
import { TokenManager } from "../volumes/projected/token-manager.ts";
import { VolumeManager, type VolumeObserver } from "../volumes/volume-manager.ts";

/** Least number of pods that start at the same time on a busy machine. */
const STARTS_MIN = 2;
/** `v1.33.4` → `1.33` */
function toRelease(version: string): string {
  return version.replace(/^v(\d+)\.(\d+).*$/, "$1.$2");
}

/** The node and its connections. */
export interface PodServicesOptions {
  readonly config: AgentConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly machine: MachineInfo;
  readonly ips: Pick<NodeIps, "current">;
  readonly capacity: NodeCapacity;
  readonly tree: CgroupTree;
  readonly quotas: ProjectQuotas | undefined;
  /** See `ResourceSettings`; likewise below. */
  readonly oomGroup: boolean;
  readonly limitsSwap: boolean;
  readonly memoryQos: MemoryQos | undefined;
  /** Undefined: systemd does not manage the cgroups. */
  readonly slices: SystemdSlices | undefined;
  readonly classes: RuntimeClasses;
  readonly cri: Pick<CriClient, "runtime">;
  readonly images: Pick<CriClient, "images">;
  /** Undefined: there are no credential plugins. */
  readonly plugins: CredentialPlugins | undefined;
  /** Undefined: every pod may use the images that are present. */
  readonly pullRecords: PullRecords | undefined;
  /** Undefined: the agent enforces no network policies. */
  readonly networkPolicies: NetworkPolicies | undefined;
  readonly resourceManagers: ResourceManagers;
  /** Undefined: the work on pods is not traced. */
  readonly tracer: Tracer | undefined;
  /** Disposes what is created here. */
  readonly stack: AsyncDisposableStack;
}

export interface PodServiceLinks
  extends Pick<PodAdmitterOptions, "node" | "pressures" | "isShuttingDown" | "terminate" | "onPreempted"> {
  readonly events: PodEventRecorder;
  readonly recordNodeEvent: RecordNodeEvent;
  readonly objects: NodeObjects;
  readonly claims: ClaimSource;
  readonly drivers: DriverVolumes;
  readonly accounts: Pick<ObjectReader, "serviceAccount">;
  readonly runtimeName: () => string;
  readonly changed: (uid: string) => void;
  readonly expectChange: () => void;
  readonly finished: (pod: Pod) => void;
  readonly active: () => readonly Pod[];
  readonly assigned: () => readonly Pod[];
  readonly onProbe: ProberOptions["onResult"];
  readonly measureCgroup: MeasureCgroup;
  readonly workerMetrics: PodWorkMetrics;
  readonly volumeMetrics: VolumeObserver;
  readonly credentialMetrics: CredentialPluginObserver;
  readonly onPulled: ImageManagerOptions["onPulled"];
}

export function createPodServices(options: PodServicesOptions, links: PodServiceLinks): PodServices {
  const { config, clock, log } = options;
  const { events, objects } = links;
  const directories = toDirectories(config);
  const nodeInfo = createNodeInfo(options);
  const node = () => nodeInfo;
  const hugePageSizes = Object.keys(options.machine.hugePages);
  const userAgent = `kube-probe/${toRelease(config.version)}`;
  const runtime = options.cri.runtime;
  return {
    settings: createPodSettings(options),
    clock,
    log,
    runtime,
    images: createImageManager(options, links),
    volumes: new VolumeManager({
      directories,
      mounter: systemMounter,
      clock,
      objects,
      manifestObjects: objects.forStaticPods,
      node,
      nodeLabels: async () => (await links.node()).metadata?.labels ?? {},
      tokens: new TokenManager({ source: objects, clock }),
      claims: links.claims,
      drivers: links.drivers,
      events,
      metrics: links.volumeMetrics,
      quotas: options.quotas,
      gitRepositories: config.volumes.gitRepositories,
    }),
    mounter: systemMounter,
    probes: new ProbeManager({
      runtime,
      clock,
      events,
      userAgent,
      nodeIp: () => nodeInfo.ips[0],
      execProbeTimeout: config.pods.execProbeTimeout,
      onChange: links.changed,
      onResult: links.onProbe,
    }),
    events,
    recordNodeEvent: links.recordNodeEvent,
    environment: objects.text,
    manifestEnvironment: objects.forStaticPods.text,
    node,
    getRuntimeName: links.runtimeName,
    readHostFile: (name) => readFile(name === "hosts" ? "/etc/hosts" : config.pods.resolvConf, "utf8").catch(() => ""),
    cgroups: createPodCgroups(options, links, hugePageSizes),
    userNamespaces: createUserNamespaces(config),
    getRuntimeHandler: (pod) => options.classes.lookupHandler(pod),
    admission: new PodAdmitter({
      node: links.node,
      pressures: links.pressures,
      isShuttingDown: links.isShuttingDown,
      pods: links.assigned,
      terminate: links.terminate,
      events,
      onPreempted: links.onPreempted,
      clock,
      allowedSysctls: config.pods.allowedUnsafeSysctls,
      appArmor: hasAppArmor(),
      resources: options.resourceManagers,
    }),
    resourceManagers: options.resourceManagers,
    startLimiter: options.stack.use(
      new StartLimiter({
        clock,
        minConcurrent: Math.max(STARTS_MIN, options.machine.cpus),
        isBusy: () => isCpuBusy(options.machine.cpus),
      }),
    ),
    networkPolicies: options.networkPolicies,
    expectChange: links.expectChange,
    onFinished: links.finished,
    metrics: links.workerMetrics,
    tracer: options.tracer,
  };
}

function createPodCgroups(
  { config, tree, slices, capacity, memoryQos, resourceManagers }: PodServicesOptions,
  { active, measureCgroup }: PodServiceLinks,
  hugePageSizes: readonly string[],
): PodServices["cgroups"] {
  const cgroups = new PodCgroups({
    tree,
    slices,
    settings: { ...config.runtime, hugePageSizes, memoryQos },
    pods: active,
    isWithoutQuota: (pod) => resourceManagers.isPodWithoutQuota(pod),
    memoryBytes: capacity.memoryBytes,
  });
  return {
    apply: (pod, before) => measureCgroup("update", () => cgroups.apply(pod, before)),
    remove: (uid) => measureCgroup("destroy", () => cgroups.remove(uid)),
    removeAll: (uids) => measureCgroup("destroy", () => cgroups.removeAll(uids)),
  };
}

function toDirectories({ rootDir, podLogsDir }: AgentConfig): Directories {
  // `/var/log/containers` beside `/var/log/pods`
  return { rootDir, podLogsDir, containerLogsDir: join(dirname(podLogsDir), "containers") };
}

/** The node as volumes and environments of pods refer to it; its addresses may change. */
function createNodeInfo({ config, ips, capacity }: PodServicesOptions): NodeInfo {
  const { cpuMillis, memoryBytes, storageBytes } = capacity;
  return {
    name: config.nodeName,
    get ips() {
      return ips.current;
    },
    allocatable: { cpuMillis, memoryBytes, storageBytes },
  };
}

function createPodSettings({
  config,
  machine,
  oomGroup,
  limitsSwap,
  memoryQos,
  resourceManagers,
}: PodServicesOptions): PodServices["settings"] {
  const hugePageSizes = Object.keys(machine.hugePages);
  return {
    directories: toDirectories(config),
    cpu: {
      ...config.runtime,
      hugePageSizes,
      oomGroup,
      limitsSwap,
      memoryQos,
      swapBytes: config.runtime.limitedSwap ? machine.swapBytes : 0,
    },
    cgroups: config.runtime,
    seccompDefault: config.runtime.seccompDefault,
    stopSignals: config.pods.stopSignals,
    podLevelResources: config.pods.podLevelResources,
    inPlaceResize: config.pods.inPlaceResize,
    readyToStartCondition: config.pods.readyToStartCondition,
    observedGeneration: config.pods.observedGeneration,
    supplementalGroupsPolicy: config.pods.supplementalGroupsPolicy,
    imageVolumes: config.volumes.images,
    resourceClaims: resourceManagers.claims !== undefined,
    deviceHealth: config.resources.reportsDeviceHealth,
    clusterDns: config.pods.clusterDns,
    clusterDomain: config.pods.clusterDomain,
    isWithoutResolvConf: config.pods.resolvConf === "",
    syncMs: config.pods.syncMs,
    restartDelays: config.pods.restartDelays,
    deadRunsMax: config.pods.deadRunsMax,
    deadRunMinAgeMs: config.pods.deadRunMinAgeMs,
    memoryCapacityBytes: machine.memoryBytes,
    hookUserAgent: `kube-lifecycle/${toRelease(config.version)}`,
  };
}

function createImageManager(options: PodServicesOptions, links: PodServiceLinks): ImageManager {
  const { config, clock, log } = options;
  const { events, objects } = links;
  return new ImageManager({
    images: options.images.images,
    clock,
    events,
    getSecret: (namespace, name, pod) => (isStatic(pod) ? objects.forStaticPods : objects).text.secret(namespace, name),
    getSecretUid: (namespace, name, pod) => (isStatic(pod) ? Promise.resolve("") : objects.secretUid(namespace, name)),
    pullRecords: options.pullRecords,
    getRuntimeHandler: config.runtime.namesRuntimeHandler ? (pod) => options.classes.lookupHandler(pod) : undefined,
    serialize: config.runtime.serializeImagePulls,
    qps: config.runtime.registryQps,
    burst: config.runtime.registryBurst,
    parallel: config.runtime.parallelImagePulls,
    nodeCredentials: () => readNodeCredentials({ rootDir: config.rootDir, home: process.env.HOME, log }),
    onPulled: links.onPulled,
    providers: options.plugins && options.stack.use(createCredentialProviders(options, options.plugins, links)),
  });
}

function createCredentialProviders(
  { clock, log }: PodServicesOptions,
  plugins: CredentialPlugins,
  links: PodServiceLinks,
): CredentialProviders {
  // Apart from the tokens of volumes, which are renewed as long as the pod exists.
  const tokens = new TokenManager({ source: links.objects, clock });
  return new CredentialProviders({
    ...plugins,
    accounts: {
      account: (namespace, name) => links.accounts.serviceAccount(namespace, name),
      token: (pod, audience) => tokens.getToken(pod, { audience, path: "" }),
      forget: (uid) => tokens.forget(uid),
    },
    clock,
    log: log.child("credentials"),
    observer: links.credentialMetrics,
  });
}

function createUserNamespaces(config: AgentConfig): UserNamespaces | undefined {
  const { idsPerPod } = config.pods;
  if (idsPerPod === undefined) return undefined;
  const range = () => readHostIdRange(idsPerPod, config.node.maxPods);
  return new UserNamespaces({ directories: config, idsPerPod, readRange: range });
}

function hasAppArmor(): boolean {
  try {
    return readFileSync("/sys/module/apparmor/parameters/enabled", "utf8").startsWith("Y");
  } catch {
    return false;
  }
}

export function createPodEventRecorder(recorder: EventRecorder | undefined): PodEventRecorder {
  const record = (
    pod: Pod,
    fieldPath: string | undefined,
    type: EventType,
    reason: string,
    message: string,
    options?: RecordOptions,
  ): void => {
    const regarding: ObjectReference = {
      kind: "Pod",
      apiVersion: "v1",
      name: podName(pod),
      namespace: podNamespace(pod),
      uid: podUid(pod),
      ...(pod.metadata?.resourceVersion === undefined ? {} : { resourceVersion: pod.metadata.resourceVersion }),
      ...(fieldPath === undefined ? {} : { fieldPath }),
    };
    recorder?.record(regarding, type, reason, message, options);
  };
  return {
    recordPodEvent: (pod, ...event) => record(pod, undefined, ...event),
    recordContainerEvent: (pod, { role, name }, type, reason, message) =>
      record(pod, `spec.${role}{${name}}`, type, reason, message),
  };
}

/** Events about the node have its name as uid, as kubelet's. */
export function toNodeReference(name: string): ObjectReference {
  return { kind: "Node", name: name === "" ? hostname() : name, uid: name };
}
