/** The pods of a daemon set: their template on a node, and the node that an existing pod is for. */
import type { DaemonSet } from "../../api/apps/daemon-set/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Affinity, Toleration } from "../../api/core/pod-spec/affinity.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import type { PodTemplateSpec } from "../../api/core/pod-template/schema.ts";
import { compareCreation } from "../workload/object-keys.ts";

export const REVISION_HASH = "controller-revision-hash";
const POD_GENERATION = "pod-template-generation";
const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";
const NODE_NAME_FIELD = "metadata.name";

const TOLERATIONS: readonly Toleration[] = [
  { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" },
  { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" },
  { key: "node.kubernetes.io/disk-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/memory-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/pid-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/unschedulable", operator: "Exists", effect: "NoSchedule" },
];
const HOST_NETWORK_TOLERATION: Toleration = {
  key: "node.kubernetes.io/network-unavailable",
  operator: "Exists",
  effect: "NoSchedule",
};

/** Daemon pods run on nodes with problems too, and are not evicted from lost nodes. */
export function addDaemonTolerations(spec: PodSpec): PodSpec {
  const added = spec.hostNetwork === true ? [...TOLERATIONS, HOST_NETWORK_TOLERATION] : TOLERATIONS;
  return { ...spec, tolerations: added.reduce(addToleration, spec.tolerations ?? []) };
}

/** Replaces a toleration of the same taints, which may differ in its seconds. */
function addToleration(existing: readonly Toleration[], added: Toleration): readonly Toleration[] {
  const isSame = ({ key, operator, effect, value = "" }: Toleration): boolean =>
    key === added.key && operator === added.operator && effect === added.effect && value === "";
  return existing.some(isSame) ? existing.map((one) => (isSame(one) ? added : one)) : [...existing, added];
}

export function podTemplate({ metadata, spec }: DaemonSet, hash: string, node: string): PodTemplateSpec {
  const template = spec?.template ?? {};
  const generation = metadata?.annotations?.[TEMPLATE_GENERATION] ?? "";
  const podSpec = addDaemonTolerations(template.spec ?? { containers: [] });
  return {
    ...template,
    metadata: {
      ...template.metadata,
      labels: {
        ...template.metadata?.labels,
        ...(/^-?\d+$/.test(generation) ? { [POD_GENERATION]: generation } : {}),
        [REVISION_HASH]: hash,
      },
    },
    spec: { ...podSpec, affinity: requireNode(podSpec.affinity, node) },
  };
}

/** The scheduler binds the pod to this node only. The template's own terms were evaluated by this controller. */
function requireNode(affinity: Affinity | undefined, node: string): Affinity {
  const term = { matchFields: [{ key: NODE_NAME_FIELD, operator: "In" as const, values: [node] }] };
  return {
    ...affinity,
    nodeAffinity: {
      ...affinity?.nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] },
    },
  };
}

/** The node that the pod runs on or is meant for; undefined if the pod names none. */
export function targetNodeOf({ spec }: Pod): string | undefined {
  if (spec?.nodeName !== undefined && spec.nodeName !== "") return spec.nodeName;
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const fields = (required?.nodeSelectorTerms ?? []).flatMap(({ matchFields = [] }) => matchFields);
  const field = fields.find(({ key, operator, values }) => {
    return key === NODE_NAME_FIELD && operator === "In" && values?.length === 1;
  });
  return field?.values?.[0];
}

/** Pods by their nodes. A deleted pod that has ended occupies its node no more. */
export function groupByNode(pods: readonly Pod[], includeEnded: boolean): Map<string, readonly Pod[]> {
  const groups = new Map<string, readonly Pod[]>();
  for (const pod of pods) {
    const { metadata, status } = pod;
    const hasEnded = status?.phase === "Succeeded" || status?.phase === "Failed";
    if (!includeEnded && hasEnded && metadata?.deletionTimestamp !== undefined) continue;
    const node = targetNodeOf(pod);
    if (node !== undefined) groups.set(node, [...(groups.get(node) ?? []), pod]);
  }
  return groups;
}

export function isUpToDate({ metadata }: Pod, hash: string): boolean {
  return hash !== "" && metadata?.labels?.[REVISION_HASH] === hash;
}

/** Scheduled pods first, then the oldest. */
export function sortOldestFirst(pods: readonly Pod[]): readonly Pod[] {
  const isUnscheduled = ({ spec }: Pod): number => Number((spec?.nodeName ?? "") === "");
  return [...pods].sort((a, b) => isUnscheduled(a) - isUnscheduled(b) || compareCreation(a, b));
}

export function nameOf({ metadata }: Pod): string {
  return metadata?.name ?? "";
}
