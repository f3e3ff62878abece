/** What plugins have of the scheduler. */

import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import type { StatefulSet } from "../../api/apps/stateful-set/schema.ts";
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ReplicationController } from "../../api/core/replication-controller/schema.ts";
import type { Service } from "../../api/core/service/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import type { PodDisruptionBudget } from "../../api/policy/pod-disruption-budget/schema.ts";
import type { CSIDriver } from "../../api/storage/csi-driver/schema.ts";
import type { CSINode } from "../../api/storage/csi-node/schema.ts";
import type { CSIStorageCapacity } from "../../api/storage/csi-storage-capacity/schema.ts";
import type { StorageClass } from "../../api/storage/storage-class/schema.ts";
import type { VolumeAttachment } from "../../api/storage/volume-attachment/schema.ts";
import type { Client } from "../../client/client.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ClusterCache } from "../cache/cluster-cache.ts";
import type { Nominator } from "../cache/nominator.ts";

/** The objects of one kind. */
export interface Lister<T> {
  get(name: string, namespace?: string): T | undefined;
  list(): Iterable<T>;
}

export interface NamespacedLister<T extends ApiObject> {
  get(name: string, namespace?: string): T | undefined;
  inNamespace(namespace: string): Iterable<T>;
}

export interface Listers {
  readonly pods: Lister<Pod>;
  readonly services: NamespacedLister<Service>;
  readonly replicationControllers: Lister<ReplicationController>;
  readonly replicaSets: Lister<ReplicaSet>;
  readonly statefulSets: Lister<StatefulSet>;
  readonly budgets: Lister<PodDisruptionBudget>;
  readonly volumes: Lister<PersistentVolume>;
  readonly claims: Lister<PersistentVolumeClaim>;
  readonly storageClasses: Lister<StorageClass>;
  readonly csiNodes: Lister<CSINode>;
  readonly csiDrivers: Lister<CSIDriver>;
  readonly storageCapacities: Lister<CSIStorageCapacity>;
  readonly attachments: Lister<VolumeAttachment>;
}

export type VolumeStage = "predicate" | "bind";

export interface Handle {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly cache: ClusterCache;
  readonly nominator: Nominator;
  readonly listers: Listers;
  /** Calls back when a volume, a claim or a pod changed, until the signal aborts. */
  readonly onVolumeChange: (callback: () => void, signal: AbortSignal) => void;
  /** The search for volumes, or their binding, has failed with an error. */
  readonly onVolumeError?: ((stage: VolumeStage) => void) | undefined;
}
