import type { Texts } from "./texts.ts";

export const schedulingTexts: Texts = {
  "core/v1.Affinity": {
    "": "Scheduling constraints of a pod.",
    nodeAffinity: "Rules about labels of nodes.",
    podAffinity: "Rules about pods to be co-located with.",
    podAntiAffinity: "Rules about pods not to be co-located with.",
  },
  "core/v1.NodeAffinity": {
    "": "Rules about labels of nodes.",
    requiredDuringSchedulingIgnoredDuringExecution: "Requirements for the node, checked at scheduling.",
    preferredDuringSchedulingIgnoredDuringExecution: "Preferences for nodes; weights are added.",
  },
  "core/v1.PodAffinity": {
    "": "Rules about pods to be co-located with.",
    requiredDuringSchedulingIgnoredDuringExecution: "Requirements for co-location, checked at scheduling.",
    preferredDuringSchedulingIgnoredDuringExecution: "Preferences for co-location; weights are added.",
  },
  "core/v1.PodAntiAffinity": {
    "": "Rules about pods not to be co-located with.",
    requiredDuringSchedulingIgnoredDuringExecution: "Requirements against co-location, checked at scheduling.",
    preferredDuringSchedulingIgnoredDuringExecution: "Preferences against co-location; weights are added.",
  },
  "core/v1.PodAffinityTerm": {
    "": "A set of pods and a topology.",
    labelSelector: "Selects the pods by labels.",
    namespaces: "The namespaces of the pods; the pod's own if unset.",
    namespaceSelector: "Selects further namespaces by labels; an empty selector matches all.",
    topologyKey: "The node label that defines co-location: kubernetes.io/hostname, topology.kubernetes.io/zone.",
    matchLabelKeys: "Keys of labels whose values must equal this pod's.",
    mismatchLabelKeys: "Keys of labels whose values must differ from this pod's.",
  },
  "core/v1.WeightedPodAffinityTerm": {
    "": "A weighted pod affinity term.",
    weight: "The weight, from 1 to 100.",
    podAffinityTerm: "The pods.",
  },
  "core/v1.PreferredSchedulingTerm": {
    "": "A weighted node selector term.",
    weight: "The weight, from 1 to 100.",
    preference: "Selects the nodes.",
  },
  "core/v1.NodeSelector": {
    "": "Selects nodes by any of several terms.",
    nodeSelectorTerms: "The terms; one must match.",
  },
  "core/v1.NodeSelectorTerm": {
    "": "Requirements on a node; all must match.",
    matchExpressions: "Requirements on labels.",
    matchFields: "Requirements on fields: metadata.name.",
  },
  "core/v1.NodeSelectorRequirement": {
    "": "A requirement on a label or field.",
    key: "The label or field.",
    operator: "In, NotIn, Exists, DoesNotExist, Gt or Lt.",
    values: "The values; one number for Gt and Lt.",
  },
  "core/v1.Toleration": {
    "": "A tolerated taint; empty fields match any.",
    key: "The key of the taint.",
    operator: "Equal compares the value, Exists ignores it.",
    value: "The value of the taint.",
    effect: "The effect of the taint.",
    tolerationSeconds: "For NoExecute: the time in seconds until the pod is evicted; never if unset.",
  },
  "core/v1.Taint": {
    "": "A taint, which repels pods that do not tolerate it.",
    key: "Its key.",
    value: "Its value.",
    effect: "NoSchedule, PreferNoSchedule, or NoExecute, which also evicts running pods.",
    timeAdded: "The time when the taint was added.",
  },
  "core/v1.TopologySpreadConstraint": {
    "": "How pods are spread across topology domains.",
    maxSkew: "The maximum difference between the numbers of pods.",
    topologyKey: "The node label whose values are the topology domains.",
    whenUnsatisfiable: "DoNotSchedule or ScheduleAnyway.",
    labelSelector: "Selects the pods to count.",
    minDomains: "The minimum number of eligible domains.",
    nodeAffinityPolicy: "Whether node affinity restricts the counted nodes: Honor or Ignore.",
    nodeTaintsPolicy: "Whether untolerated taints restrict the counted nodes: Honor or Ignore.",
    matchLabelKeys: "Keys of labels whose values must equal this pod's to be counted.",
  },
  "core/v1.TopologySelectorTerm": {
    "": "A topology domain, by labels of nodes.",
    matchLabelExpressions: "The labels; all must match.",
  },
  "core/v1.TopologySelectorLabelRequirement": {
    "": "A label and its allowed values.",
    key: "The label.",
    values: "The values.",
  },
  "scheduling/v1.PriorityClass": {
    "": "A named priority for pods.",
    value: "The priority; pods with higher values are scheduled first.",
    globalDefault: "Whether this is the default for pods without a class.",
    description: "When to use the class.",
    preemptionPolicy: "Whether pods of this class preempt others: PreemptLowerPriority or Never.",
  },
  "node/v1.RuntimeClass": {
    "": "A class of container runtimes.",
    handler: "The handler of the container runtime.",
    overhead: "The resource overhead of a pod.",
    scheduling: "The nodes that support the class.",
  },
  "node/v1.Overhead": { "": "The resource overhead of a pod.", podFixed: "The fixed resource overhead of each pod." },
  "node/v1.Scheduling": {
    "": "The nodes that support a runtime class.",
    nodeSelector: "Labels of the nodes; merged into the pod's nodeSelector.",
    tolerations: "Tolerations to add to the pod.",
  },
};
