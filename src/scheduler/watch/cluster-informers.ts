/** The informers of the scheduler. */
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import { statefulSetKind } from "../../api/apps/stateful-set/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import { persistentVolumeKind } from "../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { replicationControllerKind } from "../../api/core/replication-controller/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { podDisruptionBudgetKind } from "../../api/policy/pod-disruption-budget/kind.ts";
import { csiDriverKind } from "../../api/storage/csi-driver/kind.ts";
import { csiNodeKind } from "../../api/storage/csi-node/kind.ts";
import { csiStorageCapacityKind } from "../../api/storage/csi-storage-capacity/kind.ts";
import { storageClassKind } from "../../api/storage/storage-class/kind.ts";
import { volumeAttachmentKind } from "../../api/storage/volume-attachment/kind.ts";
import type { Informer } from "../../client/informer/informer.ts";
import type { Labels } from "../cache/label-match.ts";
import type { Listers, NamespacedLister } from "../framework/handle.ts";

/** Shares the informers of a process. */
export interface InformerSource {
  of<T extends ApiObject>(kind: Kind<T>): Informer<T>;
}

export class ClusterInformers {
  readonly #source: InformerSource;

  constructor(source: InformerSource) {
    this.#source = source;
  }

  get nodes() {
    return this.#source.of(nodeKind);
  }

  get pods() {
    return this.#source.of(podKind);
  }

  get volumes() {
    return this.#source.of(persistentVolumeKind);
  }

  get claims() {
    return this.#source.of(persistentVolumeClaimKind);
  }

  get storageClasses() {
    return this.#source.of(storageClassKind);
  }

  get csiNodes() {
    return this.#source.of(csiNodeKind);
  }

  get csiDrivers() {
    return this.#source.of(csiDriverKind);
  }

  get storageCapacities() {
    return this.#source.of(csiStorageCapacityKind);
  }

  get attachments() {
    return this.#source.of(volumeAttachmentKind);
  }

  get #namespaces() {
    return this.#source.of(namespaceKind);
  }

  /** Starts all informers. */
  listers(): Listers {
    const source = this.#source;
    return {
      pods: this.pods,
      services: indexByNamespace(source.of(serviceKind)),
      replicationControllers: source.of(replicationControllerKind),
      replicaSets: source.of(replicaSetKind),
      statefulSets: source.of(statefulSetKind),
      budgets: source.of(podDisruptionBudgetKind),
      volumes: this.volumes,
      claims: this.claims,
      storageClasses: this.storageClasses,
      csiNodes: this.csiNodes,
      csiDrivers: this.csiDrivers,
      storageCapacities: this.storageCapacities,
      attachments: this.attachments,
    };
  }

  namespaceLabels() {
    const namespaces = this.#namespaces;
    return {
      labelsOf: (name: string): Labels | undefined => namespaces.get(name)?.metadata?.labels,
      *all(): Generator<readonly [string, Labels]> {
        for (const { metadata } of namespaces.list()) yield [metadata?.name ?? "", metadata?.labels ?? {}];
      },
    };
  }

  /** Resolves when all kinds but pods are listed: no pod is found unschedulable for what is not listed yet. */
  async othersSynced(): Promise<void> {
    const source = this.#source;
    await Promise.all([
      this.nodes.synced,
      this.#namespaces.synced,
      source.of(serviceKind).synced,
      source.of(replicationControllerKind).synced,
      source.of(replicaSetKind).synced,
      source.of(statefulSetKind).synced,
      source.of(podDisruptionBudgetKind).synced,
      this.volumes.synced,
      this.claims.synced,
      this.storageClasses.synced,
      this.csiNodes.synced,
      this.csiDrivers.synced,
      this.storageCapacities.synced,
      this.attachments.synced,
    ]);
  }
}

function indexByNamespace<T extends ApiObject>(informer: Informer<T>): NamespacedLister<T> {
  const byNamespace = new Map<string, Map<string, T>>();
  const nameOf = ({ metadata }: T): string => metadata?.name ?? "";
  informer.subscribe({
    put(object) {
      const namespace = object.metadata?.namespace ?? "";
      const objects = byNamespace.get(namespace) ?? new Map<string, T>();
      byNamespace.set(namespace, objects.set(nameOf(object), object));
    },
    delete(object) {
      const namespace = object.metadata?.namespace ?? "";
      const objects = byNamespace.get(namespace);
      objects?.delete(nameOf(object));
      if (objects?.size === 0) byNamespace.delete(namespace);
    },
  });
  return {
    get: (name, namespace) => informer.get(name, namespace),
    inNamespace: (namespace) => byNamespace.get(namespace)?.values() ?? [],
  };
}
