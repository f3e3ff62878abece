/**
 * Which node may see what: its pods and what they refer to, the volumes that their claims are bound to, the secrets
 * that those volumes name, and what names the node itself. As large as the pods, volumes and attachments there are.
 */
import type { Container, EphemeralContainer } from "../../../api/core/container/schema.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";

export interface NodeGraph {
  putPod(pod: Pod): void;
  deletePod(namespace: string, name: string): void;
  putVolume(volume: PersistentVolume): void;
  deleteVolume(name: string): void;
  /** What names its node itself (`volumeattachments`, `resourceslices`). */
  putOwned(resource: string, name: string, node: string): void;
  deleteOwned(resource: string, name: string): void;
  /** Whether the object is one of the node's. `resource` is the plural; cluster-wide objects have no namespace. */
  refers(node: string, resource: string, namespace: string, name: string): boolean;
}

interface PodEdges {
  readonly node: string;
  readonly objects: ReadonlySet<string>;
}

interface VolumeEdges {
  /** `persistentvolumeclaims/NAMESPACE/NAME` */
  readonly claim: string;
  /** `secrets/NAMESPACE/NAME` */
  readonly secrets: readonly string[];
}

/** Pods that mirror a node's own files: the node writes them, so what they refer to proves nothing. */
const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

export function createNodeGraph(): NodeGraph {
  return new Graph();
}

class Graph implements NodeGraph {
  readonly #pods = new Map<string, PodEdges>();
  /** How many pods of a node refer to an object. */
  readonly #counts = new Map<string, number>();
  readonly #volumes = new Map<string, VolumeEdges>();
  /** The volumes that name a secret. */
  readonly #volumesOf = new Map<string, Set<string>>();
  readonly #owned = new Map<string, string>();

  putPod(pod: Pod): void {
    const { namespace = "", name = "" } = pod.metadata ?? {};
    this.deletePod(namespace, name);
    const node = pod.spec?.nodeName ?? "";
    if (node === "") return;
    const edges = { node, objects: new Set(referencesOf(pod)) };
    this.#pods.set(`${namespace}/${name}`, edges);
    this.#count(edges, 1);
  }

  deletePod(namespace: string, name: string): void {
    const key = `${namespace}/${name}`;
    const edges = this.#pods.get(key);
    if (edges === undefined) return;
    this.#pods.delete(key);
    this.#count(edges, -1);
  }

  putVolume(volume: PersistentVolume): void {
    const { name = "" } = volume.metadata ?? {};
    this.deleteVolume(name);
    const { namespace = "", name: claim = "" } = volume.spec?.claimRef ?? {};
    if (claim === "") return;
    const secrets = [...volumeSecrets(volume, namespace)];
    this.#volumes.set(name, { claim: `persistentvolumeclaims/${namespace}/${claim}`, secrets });
    for (const secret of secrets) {
      const names = this.#volumesOf.get(secret) ?? new Set();
      this.#volumesOf.set(secret, names.add(name));
    }
  }

  deleteVolume(name: string): void {
    for (const secret of this.#volumes.get(name)?.secrets ?? []) {
      const names = this.#volumesOf.get(secret);
      names?.delete(name);
      if (names?.size === 0) this.#volumesOf.delete(secret);
    }
    this.#volumes.delete(name);
  }

  putOwned(resource: string, name: string, node: string): void {
    if (node === "") this.deleteOwned(resource, name);
    else this.#owned.set(`${resource}//${name}`, node);
  }

  deleteOwned(resource: string, name: string): void {
    this.#owned.delete(`${resource}//${name}`);
  }

  refers(node: string, resource: string, namespace: string, name: string): boolean {
    const object = `${resource}/${namespace}/${name}`;
    if (this.#counts.has(`${node}\n${object}`)) return true;
    if (resource === "persistentvolumes") return this.#seesVolume(node, name);
    if (resource === "secrets") {
      for (const volume of this.#volumesOf.get(object) ?? []) if (this.#seesVolume(node, volume)) return true;
      return false;
    }
    return this.#owned.get(object) === node;
  }

  #seesVolume(node: string, name: string): boolean {
    const volume = this.#volumes.get(name);
    return volume !== undefined && this.#counts.has(`${node}\n${volume.claim}`);
  }

  #count({ node, objects }: PodEdges, by: 1 | -1): void {
    for (const object of objects) {
      const key = `${node}\n${object}`;
      const count = (this.#counts.get(key) ?? 0) + by;
      if (count === 0) this.#counts.delete(key);
      else this.#counts.set(key, count);
    }
  }
}

function* referencesOf(pod: Pod): Generator<string> {
  const { namespace = "", name = "", annotations } = pod.metadata ?? {};
  yield `pods/${namespace}/${name}`;
  if (annotations?.[MIRROR_ANNOTATION] === undefined) yield* podReferences(pod);
}

/** All that a pod names of its namespace: `secrets/NAMESPACE/NAME`. */
export function* podReferences(pod: Pod): Generator<string> {
  const { namespace = "", name = "" } = pod.metadata ?? {};
  const at = (resource: string, of: string | undefined): string => `${resource}/${namespace}/${of ?? ""}`;
  const { spec, status } = pod;
  if (spec === undefined) return;
  yield at("serviceaccounts", spec.serviceAccountName);
  for (const secret of spec.imagePullSecrets ?? []) yield at("secrets", secret.name);
  const containers: readonly (Container | EphemeralContainer)[] = [
    ...(spec.initContainers ?? []),
    ...(spec.containers ?? []),
    ...(spec.ephemeralContainers ?? []),
  ];
  for (const container of containers) {
    for (const { configMapRef, secretRef } of container.envFrom ?? []) {
      if (configMapRef !== undefined) yield at("configmaps", configMapRef.name);
      if (secretRef !== undefined) yield at("secrets", secretRef.name);
    }
    for (const { valueFrom } of container.env ?? []) {
      if (valueFrom?.configMapKeyRef !== undefined) yield at("configmaps", valueFrom.configMapKeyRef.name);
      if (valueFrom?.secretKeyRef !== undefined) yield at("secrets", valueFrom.secretKeyRef.name);
    }
  }
  for (const { name: claim, resourceClaimName } of spec.resourceClaims ?? []) {
    const made = status?.resourceClaimStatuses?.find((each) => each.name === claim)?.resourceClaimName;
    const of = resourceClaimName ?? made;
    if (of !== undefined) yield at("resourceclaims", of);
  }
  yield* volumeReferences(spec.volumes ?? [], name, at);
}

type Volumes = NonNullable<NonNullable<Pod["spec"]>["volumes"]>;

function* volumeReferences(
  volumes: Volumes,
  pod: string,
  at: (resource: string, name: string | undefined) => string,
): Generator<string> {
  for (const volume of volumes) {
    if (volume.configMap !== undefined) yield at("configmaps", volume.configMap.name);
    if (volume.secret !== undefined) yield at("secrets", volume.secret.secretName);
    if (volume.persistentVolumeClaim !== undefined)
      yield at("persistentvolumeclaims", volume.persistentVolumeClaim.claimName);
    if (volume.ephemeral !== undefined) yield at("persistentvolumeclaims", `${pod}-${volume.name}`);
    for (const source of volume.projected?.sources ?? []) {
      if (source.configMap !== undefined) yield at("configmaps", source.configMap.name);
      if (source.secret !== undefined) yield at("secrets", source.secret.name);
    }
    const { azureFile, cephfs, cinder, flexVolume, iscsi, rbd, scaleIO, storageos, csi } = volume;
    if (azureFile !== undefined) yield at("secrets", azureFile.secretName);
    if (csi?.nodePublishSecretRef !== undefined) yield at("secrets", csi.nodePublishSecretRef.name);
    for (const source of [cephfs, cinder, flexVolume, iscsi, rbd, scaleIO, storageos]) {
      if (source?.secretRef !== undefined) yield at("secrets", source.secretRef.name);
    }
  }
}

/** Those that nodes need; what only controllers use is none of their business. */
function* volumeSecrets({ spec }: PersistentVolume, claimNamespace: string): Generator<string> {
  if (spec === undefined) return;
  const { azureFile, cephfs, cinder, csi, flexVolume, iscsi, rbd, scaleIO, storageos } = spec;
  if (azureFile !== undefined) yield `secrets/${azureFile.secretNamespace || claimNamespace}/${azureFile.secretName}`;
  const references = [
    cephfs?.secretRef,
    cinder?.secretRef,
    flexVolume?.secretRef,
    iscsi?.secretRef,
    rbd?.secretRef,
    scaleIO?.secretRef,
    storageos?.secretRef,
    csi?.nodePublishSecretRef,
    csi?.nodeStageSecretRef,
    csi?.nodeExpandSecretRef,
  ];
  for (const reference of references) {
    if (reference?.name === undefined || reference.name === "") continue;
    yield `secrets/${reference.namespace || claimNamespace}/${reference.name}`;
  }
}
