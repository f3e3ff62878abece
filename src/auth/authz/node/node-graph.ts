/**
 * The graph of the node authorizer: the objects that each node may read. These are its pods and what they reference,
 * the volumes bound to their claims, the secrets of those volumes, and objects that name the node. Its size grows with
 * pods, volumes and attachments.
 */
import type { Container, EphemeralContainer } from "../../../api/core/container/schema.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";

export interface NodeGraph {
  putPod(pod: Pod): void;
  deletePod(namespace: string, name: string): void;
  putVolume(volume: PersistentVolume): void;
  deleteVolume(name: string): void;
  /** Objects that name their node (`volumeattachments`, `resourceslices`). */
  putNodeObject(resource: string, name: string, node: string): void;
  deleteNodeObject(resource: string, name: string): void;
  /** Whether the node is related to the object. `resource` is the plural; cluster-scoped objects have no namespace. */
  hasRelationship(node: string, resource: string, namespace: string, name: string): boolean;
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

/** Mirror pods are written by the node, so their references do not grant access. */
const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

export function createNodeGraph(): NodeGraph {
  return new Graph();
}

class Graph implements NodeGraph {
  readonly #pods = new Map<string, PodEdges>();
  /** The number of the node's pods that reference an object. */
  readonly #counts = new Map<string, number>();
  readonly #volumes = new Map<string, VolumeEdges>();
  /** The volumes that reference a secret. */
  readonly #volumesBySecret = new Map<string, Set<string>>();
  readonly #nodeObjects = new Map<string, string>();

  putPod(pod: Pod): void {
    const { namespace = "", name = "" } = pod.metadata ?? {};
    this.deletePod(namespace, name);
    const node = pod.spec?.nodeName ?? "";
    if (node === "") return;
    const edges = { node, objects: new Set(podEdges(pod)) };
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
      const names = this.#volumesBySecret.get(secret) ?? new Set();
      this.#volumesBySecret.set(secret, names.add(name));
    }
  }

  deleteVolume(name: string): void {
    for (const secret of this.#volumes.get(name)?.secrets ?? []) {
      const names = this.#volumesBySecret.get(secret);
      names?.delete(name);
      if (names?.size === 0) this.#volumesBySecret.delete(secret);
    }
    this.#volumes.delete(name);
  }

  putNodeObject(resource: string, name: string, node: string): void {
    if (node === "") this.deleteNodeObject(resource, name);
    else this.#nodeObjects.set(`${resource}//${name}`, node);
  }

  deleteNodeObject(resource: string, name: string): void {
    this.#nodeObjects.delete(`${resource}//${name}`);
  }

  hasRelationship(node: string, resource: string, namespace: string, name: string): boolean {
    const object = `${resource}/${namespace}/${name}`;
    if (this.#counts.has(`${node}\n${object}`)) return true;
    if (resource === "persistentvolumes") return this.#isRelatedToVolume(node, name);
    if (resource === "secrets") {
      for (const volume of this.#volumesBySecret.get(object) ?? [])
        if (this.#isRelatedToVolume(node, volume)) return true;
      return false;
    }
    return this.#nodeObjects.get(object) === node;
  }

  #isRelatedToVolume(node: string, name: string): boolean {
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

function* podEdges(pod: Pod): Generator<string> {
  const { namespace = "", name = "", annotations } = pod.metadata ?? {};
  yield `pods/${namespace}/${name}`;
  if (annotations?.[MIRROR_ANNOTATION] === undefined) yield* podReferences(pod);
}

/** All objects that a pod references in its namespace: `secrets/NAMESPACE/NAME`. */
export function* podReferences(pod: Pod): Generator<string> {
  const { namespace = "", name = "" } = pod.metadata ?? {};
  const key = (resource: string, of: string | undefined): string => `${resource}/${namespace}/${of ?? ""}`;
  const { spec, status } = pod;
  if (spec === undefined) return;
  yield key("serviceaccounts", spec.serviceAccountName);
  for (const secret of spec.imagePullSecrets ?? []) yield key("secrets", secret.name);
  const containers: readonly (Container | EphemeralContainer)[] = [
    ...(spec.initContainers ?? []),
    ...(spec.containers ?? []),
    ...(spec.ephemeralContainers ?? []),
  ];
  for (const container of containers) {
    for (const { configMapRef, secretRef } of container.envFrom ?? []) {
      if (configMapRef !== undefined) yield key("configmaps", configMapRef.name);
      if (secretRef !== undefined) yield key("secrets", secretRef.name);
    }
    for (const { valueFrom } of container.env ?? []) {
      if (valueFrom?.configMapKeyRef !== undefined) yield key("configmaps", valueFrom.configMapKeyRef.name);
      if (valueFrom?.secretKeyRef !== undefined) yield key("secrets", valueFrom.secretKeyRef.name);
    }
  }
  for (const { name: claim, resourceClaimName } of spec.resourceClaims ?? []) {
    const generated = status?.resourceClaimStatuses?.find((each) => each.name === claim)?.resourceClaimName;
    const of = resourceClaimName ?? generated;
    if (of !== undefined) yield key("resourceclaims", of);
  }
  yield* volumeReferences(spec.volumes ?? [], name, key);
}

type Volumes = NonNullable<NonNullable<Pod["spec"]>["volumes"]>;

function* volumeReferences(
  volumes: Volumes,
  pod: string,
  key: (resource: string, name: string | undefined) => string,
): Generator<string> {
  for (const volume of volumes) {
    if (volume.configMap !== undefined) yield key("configmaps", volume.configMap.name);
    if (volume.secret !== undefined) yield key("secrets", volume.secret.secretName);
    if (volume.persistentVolumeClaim !== undefined)
      yield key("persistentvolumeclaims", volume.persistentVolumeClaim.claimName);
    if (volume.ephemeral !== undefined) yield key("persistentvolumeclaims", `${pod}-${volume.name}`);
    for (const source of volume.projected?.sources ?? []) {
      if (source.configMap !== undefined) yield key("configmaps", source.configMap.name);
      if (source.secret !== undefined) yield key("secrets", source.secret.name);
    }
    const { azureFile, cephfs, cinder, flexVolume, iscsi, rbd, scaleIO, storageos, csi } = volume;
    if (azureFile !== undefined) yield key("secrets", azureFile.secretName);
    if (csi?.nodePublishSecretRef !== undefined) yield key("secrets", csi.nodePublishSecretRef.name);
    for (const source of [cephfs, cinder, flexVolume, iscsi, rbd, scaleIO, storageos]) {
      if (source?.secretRef !== undefined) yield key("secrets", source.secretRef.name);
    }
  }
}

/** The secrets that nodes need; not those that only controllers use. */
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
