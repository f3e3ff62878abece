/** The decisions of a scheduler about a cluster of plain objects, without an API server. */
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import type { Node } from "../../api/core/node/schema.ts";
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Service } from "../../api/core/service/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import type { PodDisruptionBudget } from "../../api/policy/pod-disruption-budget/schema.ts";
import type { CSIDriver } from "../../api/storage/csi-driver/schema.ts";
import type { CSINode } from "../../api/storage/csi-node/schema.ts";
import type { CSIStorageCapacity } from "../../api/storage/csi-storage-capacity/schema.ts";
import type { StorageClass } from "../../api/storage/storage-class/schema.ts";
import type { VolumeAttachment } from "../../api/storage/volume-attachment/schema.ts";
import type { Client } from "../../client/client.ts";
import { ClusterCache } from "../../scheduler/cache/cluster-cache.ts";
import type { Labels } from "../../scheduler/cache/label-match.ts";
import { Nominator } from "../../scheduler/cache/nominator.ts";
import { PodInfo } from "../../scheduler/cache/pod-info.ts";
import { defaultConfiguration, type SchedulerConfiguration } from "../../scheduler/config/configuration.ts";
import { defaultFeatures, type SchedulerFeatures } from "../../scheduler/config/features.ts";
import type { ClusterEvent } from "../../scheduler/framework/cluster-event.ts";
import { fitMessage } from "../../scheduler/framework/fit-error.ts";
import type { Lister, Listers } from "../../scheduler/framework/handle.ts";
import type { Cycle } from "../../scheduler/framework/plugin.ts";
import { NodeSelector } from "../../scheduler/node-selector.ts";
import { Evictions } from "../../scheduler/preemption/evictions.ts";
import { Profiles } from "../../scheduler/profiles.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../std/fake-clock.ts";

export interface ClusterObjects {
  readonly nodes?: readonly Node[];
  /** Pods that have a node. */
  readonly pods?: readonly Pod[];
  readonly namespaces?: Readonly<Record<string, Labels>>;
  readonly services?: readonly Service[];
  readonly replicaSets?: readonly ReplicaSet[];
  readonly budgets?: readonly PodDisruptionBudget[];
  readonly volumes?: readonly PersistentVolume[];
  readonly claims?: readonly PersistentVolumeClaim[];
  readonly storageClasses?: readonly StorageClass[];
  readonly csiNodes?: readonly CSINode[];
  readonly csiDrivers?: readonly CSIDriver[];
  readonly storageCapacities?: readonly CSIStorageCapacity[];
  readonly attachments?: readonly VolumeAttachment[];
  readonly config?: Partial<SchedulerConfiguration>;
  readonly features?: Partial<SchedulerFeatures>;
}

export interface Decision {
  /** Undefined if no node fits. */
  readonly node: string | undefined;
  readonly message: string;
  readonly rejectedBy: readonly string[];
  readonly nominatedNodeName: string | undefined;
  /** The names of the pods that preemption deletes. */
  readonly victims: readonly string[];
  /** The weighted scores by plugin, in the order of the feasible nodes. */
  readonly scores: Readonly<Record<string, readonly number[]>>;
}

export interface SchedulerFixture {
  readonly cache: ClusterCache;
  decide(pod: Pod): Promise<Decision>;
  /** Whether the event may make the pod schedulable, which the plugin rejected. */
  isInterested(pod: Pod, plugin: string, event: ClusterEvent): boolean;
}

export function createSchedulerFixture(objects: ClusterObjects): SchedulerFixture {
  const namespaces = Object.entries(objects.namespaces ?? { default: {} });
  const labelsOf = (name: string) => namespaces.find(([other]) => other === name)?.[1];
  const cache = new ClusterCache({ labelsOf, all: () => namespaces });
  for (const node of objects.nodes ?? []) cache.putNode(node);
  for (const pod of objects.pods ?? []) cache.putPod(pod);
  const listers = listersOf(objects);
  const config = { ...defaultConfiguration, ...objects.config };
  const [clock, random, log] = [new FakeClock(), seededRandom(1), silentLogger];
  const signal = new AbortController().signal;
  const nominator = new Nominator();
  const victims: string[] = [];
  const evictions = new Evictions({
    client: acceptingClient,
    clock,
    log,
    nominator,
    signal,
    onEvict: () => {},
    recordPreempted: ({ metadata }) => victims.push(metadata?.name ?? ""),
    rejectBinding: () => false,
    activate: () => {},
    retryLater: () => {},
  });
  const onVolumeChange = (): void => {};
  const handle = { client: acceptingClient, clock, random, log, cache, nominator, listers, onVolumeChange };
  const features = { ...defaultFeatures, asyncPreemption: false, ...objects.features };
  const profiles = new Profiles(config, { handle, extenders: [], evictions, features }, nominator);
  const selector = new NodeSelector({ cache, extenders: [], random, signal });
  return {
    cache,
    isInterested: (pod, plugin, event) =>
      profiles.interestedPlugins(new PodInfo(pod), event, new Set([plugin])).length > 0,
    async decide(pod) {
      victims.length = 0;
      const info = new PodInfo(pod);
      const framework = profiles.of(info);
      if (framework === undefined) throw new Error("no profile has this name");
      const cycle: Cycle = { pod: info, filters: new Map(), states: new Map() };
      const selection = await selector.select(framework, cycle);
      const none = { nominatedNodeName: undefined, victims, rejectedBy: [], scores: {} };
      if (selection.node !== undefined) {
        const scores = Object.fromEntries(selection.scores?.byPlugin ?? []);
        return { ...none, node: selection.node.name, message: "", scores };
      }
      if ("error" in selection) return { ...none, node: undefined, message: selection.error };
      const { rejections, preFilterMessage, rejectedBy } = selection.diagnosis;
      const result = await framework.postFilter(cycle, rejections);
      const postFilterMessage = result?.rejection?.reasons.join(", ") ?? "";
      const nodeCount = cache.nodes().length;
      return {
        node: undefined,
        message: fitMessage({ nodeCount, rejections, preFilterMessage, postFilterMessage }),
        rejectedBy: [...rejectedBy].sort(),
        nominatedNodeName: result?.nominatedNodeName,
        victims: [...victims],
        scores: {},
      };
    },
  };
}

const acceptingClient = {
  patch: async () => ({}),
  delete: async () => {},
  createSubresource: async () => ({}),
} as Partial<Client> as Client;

function listersOf(objects: ClusterObjects): Listers {
  return {
    pods: lister(objects.pods),
    services: {
      get: lister(objects.services).get,
      inNamespace: (namespace) =>
        (objects.services ?? []).filter(({ metadata }) => (metadata?.namespace ?? "") === namespace),
    },
    replicationControllers: lister([]),
    replicaSets: lister(objects.replicaSets),
    statefulSets: lister([]),
    budgets: lister(objects.budgets),
    volumes: lister(objects.volumes),
    claims: lister(objects.claims),
    storageClasses: lister(objects.storageClasses),
    csiNodes: lister(objects.csiNodes),
    csiDrivers: lister(objects.csiDrivers),
    storageCapacities: lister(objects.storageCapacities),
    attachments: lister(objects.attachments),
  };
}

function lister<T extends ApiObject>(objects: readonly T[] = []): Lister<T> {
  return {
    get: (name, namespace = "") =>
      objects.find(({ metadata }) => metadata?.name === name && (metadata?.namespace ?? "") === namespace),
    list: () => objects,
  };
}
