import { deepEqual } from "../../schema/equal.ts";
import { allVerbs, type Kind, type Strategy } from "../kind.ts";
import { dns1123Label } from "../meta/names.ts";
import { keepStatus, onlyStatus, statusSubresource } from "../strategy.ts";
import { type Pod, type PodSpec, type PodStatus, pod } from "./pod.ts";
import { podColumns, podRowConditions } from "./pod-columns.ts";
import { setPodDefaults } from "./pod-defaults.ts";
import { qosClassOf } from "./pod-qos.ts";
import { validatePod, validatePodUpdate } from "./pod-validation.ts";
import { podSpecWarnings } from "./pod-warnings.ts";

const strategy: Strategy<Pod> = {
  setDefaults: setPodDefaults,
  prepareForCreate,
  prepareForUpdate,
  validate: validatePod,
  validateUpdate: validatePodUpdate,
  // Updates of pods are frequent and seldom made by people.
  warnings: (object, previous) => (previous === undefined ? podWarnings(object) : []),
  gracePeriodSeconds: gracePeriod,
};

function podWarnings(object: Pod): readonly string[] {
  const name = dns1123Label(object.metadata?.name ?? "");
  const recommended =
    "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended";
  return [
    ...(name.length === 0 ? [] : [`metadata.name: ${recommended}: [${name.join(" ")}]`]),
    ...(object.spec === undefined ? [] : podSpecWarnings(object.spec, "spec", object.metadata, { template: false })),
  ];
}

/** The older member has the first address of the newer one, and wins where they differ. */
function withBothIps(object: Pod): Pod {
  const { podIP, podIPs = [] } = object.status ?? {};
  const [first] = podIPs;
  if (podIP) return podIP === first?.ip ? object : { ...object, status: { ...object.status, podIPs: [{ ip: podIP }] } };
  return first === undefined ? object : { ...object, status: { ...object.status, podIP: first.ip } };
}

function prepareForStatusUpdate(next: Pod, previous: Pod): Pod {
  const kept = withBothIps(onlyStatus(next, previous));
  // Quality of service is decided once, by the spec.
  const qosClass = previous.status?.qosClass;
  return qosClass === undefined ? kept : { ...kept, status: { ...kept.status, qosClass } };
}

function prepareForCreate(object: Pod): Pod {
  const metadata = { ...object.metadata, generation: 1 };
  if (object.spec === undefined) return { ...object, metadata, status: { phase: "Pending" } };
  return {
    ...object,
    metadata,
    // The priority of a pod that names no class.
    spec: {
      ...object.spec,
      priority: object.spec.priority ?? 0,
      preemptionPolicy: object.spec.preemptionPolicy ?? "PreemptLowerPriority",
    },
    status: { phase: "Pending", qosClass: qosClassOf(object.spec), ...gated(object.spec) },
  };
}

/** That gates hold the pod back shows from the start. */
function gated(spec: PodSpec): Pick<PodStatus, "conditions"> {
  if ((spec.schedulingGates ?? []).length === 0) return {};
  const message = "Scheduling is blocked due to non-empty scheduling gates";
  return { conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated", message }] };
}

/** The generation counts the changes of the spec. */
function prepareForUpdate(next: Pod, previous: Pod): Pod {
  const kept = keepStatus(next, previous);
  const generation = previous.metadata?.generation ?? 0;
  const counted = deepEqual(next.spec, previous.spec) ? generation : generation + 1;
  return { ...kept, metadata: { ...kept.metadata, ...(counted === 0 ? {} : { generation: counted }) } };
}

/** A pod that no node has yet, or that has come to its end, needs no grace (`podStrategy.CheckGracefulDelete`). */
function gracePeriod(object: Pod, requested: number | undefined): number {
  const wanted = requested ?? object.spec?.terminationGracePeriodSeconds ?? 30;
  if (!object.spec?.nodeName) return 0;
  if (object.status?.phase === "Succeeded" || object.status?.phase === "Failed") return 0;
  return wanted < 0 ? 1 : wanted;
}

export const podKind: Kind<Pod> = {
  group: "",
  version: "v1",
  kind: "Pod",
  listKind: "PodList",
  plural: "pods",
  singular: "pod",
  shortNames: ["po"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    { name: "binding", kind: "Binding", verbs: ["create"] },
    { name: "log", kind: "Pod", verbs: ["get"] },
    statusSubresource("Pod", { prepareForUpdate: prepareForStatusUpdate }),
  ],
  storageName: "pods",
  schema: pod,
  columns: podColumns,
  rowConditions: podRowConditions,
  selectableFields: {
    "spec.nodeName": (object) => object.spec?.nodeName ?? "",
    "spec.restartPolicy": (object) => object.spec?.restartPolicy ?? "",
    "spec.schedulerName": (object) => object.spec?.schedulerName ?? "",
    "spec.serviceAccountName": (object) => object.spec?.serviceAccountName ?? "",
    "spec.hostNetwork": (object) => String(object.spec?.hostNetwork ?? false),
    "status.phase": (object) => object.status?.phase ?? "",
    "status.podIP": (object) => object.status?.podIP ?? "",
    "status.podIPs": (object) => (object.status?.podIPs ?? []).map((podIP) => podIP.ip).join(","),
    "status.nominatedNodeName": (object) => object.status?.nominatedNodeName ?? "",
  },
  strategy,
};
