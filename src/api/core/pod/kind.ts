import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { podColumns, podRowConditions } from "./columns.ts";
import { podEphemeralContainersStrategy } from "./ephemeral-containers.ts";
import { podResizeStrategy } from "./resize.ts";
import { type Pod, pod } from "./schema.ts";
import { podStatusStrategy, podStrategy } from "./strategy.ts";

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
  returnsDeletedObject: true,
  subresources: [
    { name: "attach", kind: "PodAttachOptions", verbs: ["create", "get"] },
    { name: "binding", kind: "Binding", verbs: ["create"] },
    {
      name: "ephemeralcontainers",
      kind: "Pod",
      verbs: ["get", "patch", "update"],
      strategy: podEphemeralContainersStrategy,
    },
    { name: "eviction", group: "policy", version: "v1", kind: "Eviction", verbs: ["create"] },
    { name: "exec", kind: "PodExecOptions", verbs: ["create", "get"] },
    { name: "log", kind: "Pod", verbs: ["get"] },
    { name: "portforward", kind: "PodPortForwardOptions", verbs: ["create", "get"] },
    { name: "proxy", kind: "PodProxyOptions", verbs: ["create", "delete", "get", "patch", "update"] },
    {
      name: "resize",
      kind: "Pod",
      verbs: ["get", "patch", "update"],
      featureGate: "InPlacePodVerticalScaling",
      strategy: podResizeStrategy,
    },
    statusSubresource("Pod", podStatusStrategy),
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
  indexedFields: ["spec.nodeName"],
  updateChecks: ["metadataUpdate", "metadata", "spec"],
  strategy: podStrategy,
};
