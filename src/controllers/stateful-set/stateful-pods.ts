/** The pods of a stateful set: their ordinals, names, labels and volumes. */
import type { StatefulSet } from "../../api/apps/stateful-set/schema.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodTemplateSpec } from "../../api/core/pod-template/schema.ts";
import { isPodReady } from "../workload/active-pods.ts";
import { controllerReference } from "../workload/object-keys.ts";

const POD_NAME = "statefulset.kubernetes.io/pod-name";
const POD_INDEX = "apps.kubernetes.io/pod-index";
const REVISION = "controller-revision-hash";

const INT32_MAX = 2 ** 31 - 1;

export function replicasOf({ spec }: StatefulSet): number {
  return spec?.replicas ?? 1;
}

export function firstOrdinal({ spec }: StatefulSet): number {
  return spec?.ordinals?.start ?? 0;
}

/** The set's name and the ordinal in the name of a pod; undefined for other names. */
function parseName(name: string): { readonly parent: string; readonly ordinal: number } | undefined {
  const [, parent, digits] = /^(.*)-([0-9]+)$/s.exec(name) ?? [];
  if (parent === undefined || digits === undefined || Number(digits) > INT32_MAX) return undefined;
  return { parent, ordinal: Number(digits) };
}

export function isMember({ metadata }: StatefulSet, pod: Pod): boolean {
  return parseName(nameOf(pod))?.parent === metadata?.name;
}

/** −1 for a name without an ordinal. */
export function ordinalOf(pod: Pod): number {
  return parseName(nameOf(pod))?.ordinal ?? -1;
}

export function isInRange(set: StatefulSet, pod: Pod): boolean {
  const index = ordinalOf(pod) - firstOrdinal(set);
  return index >= 0 && index < replicasOf(set);
}

export function nameOf({ metadata }: Pod): string {
  return metadata?.name ?? "";
}

export function revisionOf({ metadata }: Pod): string {
  return metadata?.labels?.[REVISION] ?? "";
}

/** A pod that does not exist yet has no phase. */
export function isCreated({ status }: Pod): boolean {
  return (status?.phase ?? "") !== "";
}

export function hasEnded({ status }: Pod): boolean {
  return status?.phase === "Failed" || status?.phase === "Succeeded";
}

export function isTerminating({ metadata }: Pod): boolean {
  return metadata?.deletionTimestamp !== undefined;
}

export function isRunningAndReady(pod: Pod): boolean {
  return pod.status?.phase === "Running" && isPodReady(pod);
}

export function isHealthy(pod: Pod): boolean {
  return isRunningAndReady(pod) && !isTerminating(pod);
}

export function allowsBurst({ spec }: StatefulSet): boolean {
  return spec?.podManagementPolicy === "Parallel";
}

export function newPod(set: StatefulSet, template: PodTemplateSpec, ordinal: number, revision: string): Pod {
  const { name: owner, namespace } = set.metadata ?? {};
  const name = `${owner}-${ordinal}`;
  const { labels, annotations, finalizers } = template.metadata ?? {};
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      generateName: `${owner}-`,
      namespace,
      labels: { ...labels, [REVISION]: revision },
      annotations,
      finalizers,
      ownerReferences: [controllerReference(set)],
    },
    spec: { ...(template.spec ?? { containers: [] }), hostname: name, subdomain: set.spec?.serviceName },
  };
  return withStorage(set, withIdentity(set, pod));
}

export function matchesIdentity(set: StatefulSet, pod: Pod): boolean {
  return isMember(set, pod) && pod.metadata?.labels?.[POD_NAME] === nameOf(pod);
}

export function withIdentity({ metadata }: StatefulSet, pod: Pod): Pod {
  const ordinal = ordinalOf(pod);
  const name = `${metadata?.name}-${ordinal}`;
  const labels = { ...pod.metadata?.labels, [POD_NAME]: name, [POD_INDEX]: String(ordinal) };
  return { ...pod, metadata: { ...pod.metadata, name, namespace: metadata?.namespace, labels } };
}

export function claimNameOf({ metadata }: StatefulSet, template: PersistentVolumeClaim, ordinal: number): string {
  return `${template.metadata?.name}-${metadata?.name}-${ordinal}`;
}

export function claimTemplates({ spec }: StatefulSet): readonly PersistentVolumeClaim[] {
  return spec?.volumeClaimTemplates ?? [];
}

export function claimsOf(set: StatefulSet, pod: Pod): readonly PersistentVolumeClaim[] {
  const { namespace } = set.metadata ?? {};
  return claimTemplates(set).map((template) => {
    const name = claimNameOf(set, template, ordinalOf(pod));
    const labels = { ...template.metadata?.labels, ...set.spec?.selector?.matchLabels };
    return { ...template, metadata: { ...template.metadata, name, namespace, labels } };
  });
}

export function matchesStorage(set: StatefulSet, pod: Pod): boolean {
  const volumes = new Map((pod.spec?.volumes ?? []).map((volume) => [volume.name, volume]));
  return claimTemplates(set).every((template) => {
    const volume = volumes.get(template.metadata?.name ?? "");
    return volume?.persistentVolumeClaim?.claimName === claimNameOf(set, template, ordinalOf(pod));
  });
}

/** Volumes of the claims replace those of the template with the same names. */
export function withStorage(set: StatefulSet, pod: Pod): Pod {
  if (pod.spec === undefined || claimTemplates(set).length === 0) return pod;
  const claims = claimTemplates(set).map((template) => ({
    name: template.metadata?.name ?? "",
    persistentVolumeClaim: { claimName: claimNameOf(set, template, ordinalOf(pod)) },
  }));
  const names = new Set(claims.map(({ name }) => name));
  const others = (pod.spec.volumes ?? []).filter(({ name }) => !names.has(name));
  return { ...pod, spec: { ...pod.spec, volumes: [...claims, ...others] } };
}
