import {
  documentedEnum,
  int64,
  list,
  listMap,
  named,
  object,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { containerStatus } from "../container/status.ts";
import { podSpec } from "../pod-spec/schema.ts";

export const podCondition = object("core/v1.PodCondition", {
  type: required(1, named("v1.PodConditionType", string)),
  observedGeneration: optional(7, int64, {
    featureGate: "PodObservedGenerationTracking",
  }),
  status: required(2, named("v1.ConditionStatus", string)),
  lastProbeTime: optional(3, time),
  lastTransitionTime: optional(4, time),
  reason: optional(5, string),
  message: optional(6, string),
});
export type PodCondition = Infer<typeof podCondition>;

export const podIP = object("core/v1.PodIP", {
  ip: required(1, string),
});
export type PodIP = Infer<typeof podIP>;

export const hostIP = object("core/v1.HostIP", {
  ip: required(1, string),
});
export type HostIP = Infer<typeof hostIP>;

export const podResourceClaimStatus = object("core/v1.PodResourceClaimStatus", {
  name: required(1, string),
  resourceClaimName: pointer(2, string),
});
export type PodResourceClaimStatus = Infer<typeof podResourceClaimStatus>;

export const podStatus = object("core/v1.PodStatus", {
  observedGeneration: optional(17, int64, {
    featureGate: "PodObservedGenerationTracking",
  }),
  phase: optional(1, named("v1.PodPhase", documentedEnum("Pending", "Running", "Succeeded", "Failed", "Unknown"))),
  conditions: optional(2, listMap(podCondition, "type"), {
    patchStrategy: "merge",
    patchMergeKey: "type",
  }),
  message: optional(3, string),
  reason: optional(4, string),
  nominatedNodeName: optional(11, string),
  hostIP: optional(5, string),
  hostIPs: optional(16, list(hostIP), {
    patchStrategy: "merge",
    patchMergeKey: "ip",
  }),
  podIP: optional(6, string),
  podIPs: optional(12, listMap(podIP, "ip"), {
    patchStrategy: "merge",
    patchMergeKey: "ip",
  }),
  startTime: pointer(7, time),
  initContainerStatuses: optional(10, list(containerStatus)),
  containerStatuses: optional(8, list(containerStatus)),
  qosClass: optional(9, named("v1.PodQOSClass", documentedEnum("Guaranteed", "Burstable", "BestEffort"))),
  ephemeralContainerStatuses: optional(13, list(containerStatus)),
  resize: optional(14, named("v1.PodResizeStatus", string), { featureGate: "InPlacePodVerticalScaling" }),
  resourceClaimStatuses: optional(15, listMap(podResourceClaimStatus, "name"), {
    patchStrategy: "merge,retainKeys",
    patchMergeKey: "name",
    featureGate: "DynamicResourceAllocation",
  }),
});
export type PodStatus = Infer<typeof podStatus>;

export const pod = object("core/v1.Pod", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, podSpec),
  status: optional(3, podStatus),
});
export type Pod = Infer<typeof pod>;
