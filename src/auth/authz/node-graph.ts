import type { Container, EphemeralContainer } from "../../api/core/container.ts";
import type { Pod } from "../../api/core/pod.ts";

/** Which pods are on which node, and what they refer to. Fed with every pod event; as large as the pods there are. */
export interface NodeGraph {
  putPod(pod: Pod): void;
  deletePod(namespace: string, name: string): void;
  /** Whether a pod of this node is, or refers to, the object. `resource` is the plural. */
  refers(node: string, resource: string, namespace: string, name: string): boolean;
}

interface PodEdges {
  readonly node: string;
  readonly objects: ReadonlySet<string>;
}

/** Pods that mirror a node's own files: the node writes them, so what they refer to proves nothing. */
const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

export function createNodeGraph(): NodeGraph {
  const pods = new Map<string, PodEdges>();
  /** How many pods of a node refer to an object. */
  const counts = new Map<string, number>();

  const change = ({ node, objects }: PodEdges, by: 1 | -1): void => {
    for (const object of objects) {
      const key = `${node}\n${object}`;
      const count = (counts.get(key) ?? 0) + by;
      if (count === 0) counts.delete(key);
      else counts.set(key, count);
    }
  };
  const remove = (key: string): void => {
    const edges = pods.get(key);
    if (edges === undefined) return;
    pods.delete(key);
    change(edges, -1);
  };
  return {
    putPod(pod) {
      const { namespace = "", name = "" } = pod.metadata ?? {};
      const key = `${namespace}/${name}`;
      remove(key);
      const node = pod.spec?.nodeName ?? "";
      if (node === "") return;
      const edges = { node, objects: new Set(referencesOf(pod)) };
      pods.set(key, edges);
      change(edges, 1);
    },
    deletePod: (namespace, name) => remove(`${namespace}/${name}`),
    refers: (node, resource, namespace, name) => counts.has(`${node}\n${resource}/${namespace}/${name}`),
  };
}

function* referencesOf(pod: Pod): Generator<string> {
  const { namespace = "", name = "", annotations } = pod.metadata ?? {};
  const at = (resource: string, of: string | undefined): string => `${resource}/${namespace}/${of ?? ""}`;
  yield at("pods", name);
  const { spec } = pod;
  if (spec === undefined || annotations?.[MIRROR_ANNOTATION] !== undefined) return;
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
  for (const volume of spec.volumes ?? []) {
    if (volume.configMap !== undefined) yield at("configmaps", volume.configMap.name);
    if (volume.secret !== undefined) yield at("secrets", volume.secret.secretName);
    if (volume.persistentVolumeClaim !== undefined)
      yield at("persistentvolumeclaims", volume.persistentVolumeClaim.claimName);
    if (volume.ephemeral !== undefined) yield at("persistentvolumeclaims", `${name}-${volume.name}`);
    for (const source of volume.projected?.sources ?? []) {
      if (source.configMap !== undefined) yield at("configmaps", source.configMap.name);
      if (source.secret !== undefined) yield at("secrets", source.secret.name);
    }
  }
}
