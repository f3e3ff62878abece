import {
  boolean,
  documentedEnum,
  int32,
  int64,
  list,
  listMap,
  map,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { container, ephemeralContainer } from "../container/schema.ts";
import { podSecurityContext } from "../container/security-context.ts";
import { localObjectReference } from "../references/object-reference.ts";
import { resourceList, resourceRequirements } from "../resources/schema.ts";
import { volume } from "../volume/schema.ts";
import { affinity, toleration, topologySpreadConstraint } from "./affinity.ts";

export const podDNSConfigOption = object("core/v1.PodDNSConfigOption", {
  name: optional(1, string),
  value: pointer(2, string),
});
export type PodDNSConfigOption = Infer<typeof podDNSConfigOption>;

export const podDNSConfig = object("core/v1.PodDNSConfig", {
  nameservers: optional(1, list(string)),
  searches: optional(2, list(string)),
  options: optional(3, list(podDNSConfigOption)),
});
export type PodDNSConfig = Infer<typeof podDNSConfig>;

export const hostAlias = object("core/v1.HostAlias", {
  ip: required(1, string),
  hostnames: optional(2, list(string)),
});
export type HostAlias = Infer<typeof hostAlias>;

export const podReadinessGate = object("core/v1.PodReadinessGate", {
  conditionType: required(1, named("v1.PodConditionType", string)),
});
export type PodReadinessGate = Infer<typeof podReadinessGate>;

export const podOS = object("core/v1.PodOS", {
  name: required(1, named("v1.OSName", string)),
});
export type PodOS = Infer<typeof podOS>;

export const podSchedulingGate = object("core/v1.PodSchedulingGate", {
  name: required(1, string),
});
export type PodSchedulingGate = Infer<typeof podSchedulingGate>;

export const podResourceClaim = object("core/v1.PodResourceClaim", {
  name: required(1, string),
  resourceClaimName: pointer(3, string),
  resourceClaimTemplateName: pointer(4, string),
});
export type PodResourceClaim = Infer<typeof podResourceClaim>;

export const podSpec = object("core/v1.PodSpec", {
  volumes: optional(1, listMap(volume, "name"), {
    patchStrategy: "merge,retainKeys",
    patchMergeKey: "name",
  }),
  initContainers: optional(20, listMap(container, "name"), {
    patchStrategy: "merge",
    patchMergeKey: "name",
  }),
  containers: required(2, listMap(container, "name"), {
    patchStrategy: "merge",
    patchMergeKey: "name",
  }),
  ephemeralContainers: optional(34, listMap(ephemeralContainer, "name"), {
    patchStrategy: "merge",
    patchMergeKey: "name",
  }),
  restartPolicy: optional(3, named("v1.RestartPolicy", documentedEnum("Always", "OnFailure", "Never"))),
  terminationGracePeriodSeconds: pointer(4, int64),
  activeDeadlineSeconds: pointer(5, int64),
  dnsPolicy: optional(
    6,
    named("v1.DNSPolicy", documentedEnum("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
  ),
  nodeSelector: optional(7, map(string, { atomic: true })),
  serviceAccountName: optional(8, string),
  serviceAccount: optional(9, string),
  automountServiceAccountToken: pointer(21, boolean),
  nodeName: optional(10, string),
  hostNetwork: optional(11, boolean),
  hostPID: optional(12, boolean),
  hostIPC: optional(13, boolean),
  shareProcessNamespace: pointer(27, boolean),
  securityContext: pointer(14, podSecurityContext),
  imagePullSecrets: optional(15, listMap(localObjectReference, "name"), {
    patchStrategy: "merge",
    patchMergeKey: "name",
  }),
  hostname: optional(16, string),
  subdomain: optional(17, string),
  affinity: pointer(18, affinity),
  schedulerName: optional(19, string),
  tolerations: optional(22, list(toleration)),
  hostAliases: optional(23, listMap(hostAlias, "ip"), {
    patchStrategy: "merge",
    patchMergeKey: "ip",
  }),
  priorityClassName: optional(24, string),
  priority: pointer(25, int32),
  dnsConfig: pointer(26, podDNSConfig),
  readinessGates: optional(28, list(podReadinessGate)),
  runtimeClassName: pointer(29, string),
  enableServiceLinks: pointer(30, boolean),
  preemptionPolicy: pointer(31, named("v1.PreemptionPolicy", documentedEnum("PreemptLowerPriority", "Never"))),
  overhead: optional(32, resourceList),
  topologySpreadConstraints: optional(33, listMap(topologySpreadConstraint, "topologyKey", "whenUnsatisfiable"), {
    patchStrategy: "merge",
    patchMergeKey: "topologyKey",
  }),
  setHostnameAsFQDN: pointer(35, boolean),
  os: pointer(36, podOS),
  hostUsers: pointer(37, boolean),
  schedulingGates: optional(38, listMap(podSchedulingGate, "name"), {
    patchStrategy: "merge",
    patchMergeKey: "name",
  }),
  resourceClaims: optional(39, listMap(podResourceClaim, "name"), {
    patchStrategy: "merge,retainKeys",
    patchMergeKey: "name",
    featureGate: "DynamicResourceAllocation",
  }),
  resources: pointer(40, resourceRequirements, {
    featureGate: "PodLevelResources",
  }),
});
export type PodSpec = Infer<typeof podSpec>;
