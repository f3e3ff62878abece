import type { Texts } from "./texts.ts";

export const schedulingTexts: Texts = {
  "core/v1.Affinity": {
    "": "Which nodes and neighbours a pod wants or avoids.",
    nodeAffinity: "Nodes, by their labels.",
    podAffinity: "Pods to be near to.",
    podAntiAffinity: "Pods to keep away from.",
  },
  "core/v1.NodeAffinity": {
    "": "Nodes that a pod wants, by their labels.",
    requiredDuringSchedulingIgnoredDuringExecution: "What a node must have when the pod is placed.",
    preferredDuringSchedulingIgnoredDuringExecution: "What makes a node better; weights are added up.",
  },
  "core/v1.PodAffinity": {
    "": "Pods that a pod wants to be near to.",
    requiredDuringSchedulingIgnoredDuringExecution: "Those that must be near when the pod is placed.",
    preferredDuringSchedulingIgnoredDuringExecution: "Those that make a place better; weights are added up.",
  },
  "core/v1.PodAntiAffinity": {
    "": "Pods that a pod wants to keep away from.",
    requiredDuringSchedulingIgnoredDuringExecution: "Those that must not be near when the pod is placed.",
    preferredDuringSchedulingIgnoredDuringExecution: "Those that make a place worse; weights are added up.",
  },
  "core/v1.PodAffinityTerm": {
    "": "Pods, and what near means.",
    labelSelector: "The pods, by their labels.",
    namespaces: "The namespaces they are in; the pod's own where nothing is given.",
    namespaceSelector: "Namespaces by their labels, beside those named; an empty selector takes all.",
    topologyKey:
      "Near is a node with the same value of this label: kubernetes.io/hostname, topology.kubernetes.io/zone.",
    matchLabelKeys: "Labels that must be the same as this pod's.",
    mismatchLabelKeys: "Labels that must differ from this pod's.",
  },
  "core/v1.WeightedPodAffinityTerm": {
    "": "Pods, and how much they count.",
    weight: "From 1 to 100.",
    podAffinityTerm: "The pods.",
  },
  "core/v1.PreferredSchedulingTerm": {
    "": "Nodes, and how much they count.",
    weight: "From 1 to 100.",
    preference: "The nodes.",
  },
  "core/v1.NodeSelector": { "": "Nodes by any of several terms.", nodeSelectorTerms: "The terms; one must hold." },
  "core/v1.NodeSelectorTerm": {
    "": "Conditions on a node; all must hold.",
    matchExpressions: "Conditions on its labels.",
    matchFields: "Conditions on its fields: metadata.name.",
  },
  "core/v1.NodeSelectorRequirement": {
    "": "A condition on one label or field.",
    key: "The label or field.",
    operator: "In, NotIn, Exists, DoesNotExist, Gt or Lt.",
    values: "The values; one number for Gt and Lt.",
  },
  "core/v1.Toleration": {
    "": "A taint that does not keep a pod away; empty members match any.",
    key: "The key of the taint.",
    operator: "Equal compares the value, Exists does not.",
    value: "The value of the taint.",
    effect: "The effect of the taint.",
    tolerationSeconds: "For NoExecute: seconds the pod may stay; for ever where nothing is given.",
  },
  "core/v1.Taint": {
    "": "A mark that keeps pods off a node unless they tolerate it.",
    key: "Its key.",
    value: "Its value.",
    effect: "NoSchedule, PreferNoSchedule, or NoExecute, which also ends pods that run.",
    timeAdded: "When it was added.",
  },
  "core/v1.TopologySpreadConstraint": {
    "": "How pods are spread over zones, nodes or the like.",
    maxSkew: "How much the numbers of pods may differ.",
    topologyKey: "The label of nodes that says which of them belong together.",
    whenUnsatisfiable: "DoNotSchedule or ScheduleAnyway.",
    labelSelector: "The pods that are counted.",
    minDomains: "The least number of zones, nodes or the like that count.",
    nodeAffinityPolicy: "Whether nodes that the pod's affinity excludes count: Honor or Ignore.",
    nodeTaintsPolicy: "Whether nodes with taints the pod does not tolerate count: Honor or Ignore.",
    matchLabelKeys: "Labels that must be the same as this pod's for a pod to be counted.",
  },
  "core/v1.TopologySelectorTerm": {
    "": "A place, by labels of nodes.",
    matchLabelExpressions: "The labels; all must hold.",
  },
  "core/v1.TopologySelectorLabelRequirement": {
    "": "A label and the values it may have.",
    key: "The label.",
    values: "The values.",
  },
  "scheduling/v1.PriorityClass": {
    "": "A name for a priority that pods can have.",
    value: "The priority; higher numbers go first.",
    globalDefault: "Whether pods that name no class have this one.",
    description: "When to use it.",
    preemptionPolicy: "Whether pods of this class push out others: PreemptLowerPriority or Never.",
  },
  "node/v1.RuntimeClass": {
    "": "A way to run containers that nodes offer.",
    handler: "The handler of the runtime.",
    overhead: "What a pod takes besides its containers.",
    scheduling: "Which nodes offer it.",
  },
  "node/v1.Overhead": { "": "What a pod takes besides its containers.", podFixed: "The same for every pod." },
  "node/v1.Scheduling": {
    "": "Which nodes offer a runtime class.",
    nodeSelector: "Labels the nodes have; added to the pod's own.",
    tolerations: "Tolerations added to the pod's own.",
  },
};
