import {
  boolean,
  documentedEnum,
  int32,
  intOrString,
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
import { condition } from "../../meta/condition.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const servicePort = object("core/v1.ServicePort", {
  name: optional(1, string),
  protocol: optional(2, named("v1.Protocol", documentedEnum("TCP", "UDP", "SCTP")), { default: "TCP" }),
  appProtocol: pointer(6, string),
  port: required(3, int32),
  targetPort: optional(4, intOrString),
  nodePort: optional(5, int32),
});
export type ServicePort = Infer<typeof servicePort>;

export const clientIPConfig = object("core/v1.ClientIPConfig", {
  timeoutSeconds: pointer(1, int32),
});
export type ClientIPConfig = Infer<typeof clientIPConfig>;

export const sessionAffinityConfig = object("core/v1.SessionAffinityConfig", {
  clientIP: pointer(1, clientIPConfig),
});
export type SessionAffinityConfig = Infer<typeof sessionAffinityConfig>;

export const serviceSpec = object("core/v1.ServiceSpec", {
  ports: optional(1, listMap(servicePort, "port", "protocol"), { patchStrategy: "merge", patchMergeKey: "port" }),
  selector: optional(2, map(string, { atomic: true })),
  clusterIP: optional(3, string),
  clusterIPs: optional(18, list(string)),
  type: optional(4, named("v1.ServiceType", documentedEnum("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"))),
  externalIPs: optional(5, list(string)),
  sessionAffinity: optional(7, named("v1.ServiceAffinity", documentedEnum("ClientIP", "None"))),
  loadBalancerIP: optional(8, string),
  loadBalancerSourceRanges: optional(9, list(string)),
  externalName: optional(10, string),
  externalTrafficPolicy: optional(11, named("v1.ServiceExternalTrafficPolicy", documentedEnum("Cluster", "Local"))),
  healthCheckNodePort: optional(12, int32),
  publishNotReadyAddresses: optional(13, boolean),
  sessionAffinityConfig: pointer(14, sessionAffinityConfig),
  ipFamilies: optional(19, list(named("v1.IPFamily", documentedEnum("IPv4", "IPv6")))),
  ipFamilyPolicy: pointer(
    17,
    named("v1.IPFamilyPolicy", documentedEnum("SingleStack", "PreferDualStack", "RequireDualStack")),
  ),
  allocateLoadBalancerNodePorts: pointer(20, boolean),
  loadBalancerClass: pointer(21, string),
  internalTrafficPolicy: pointer(22, named("v1.ServiceInternalTrafficPolicy", documentedEnum("Cluster", "Local"))),
  trafficDistribution: pointer(23, string, { featureGate: "ServiceTrafficDistribution" }),
});
export type ServiceSpec = Infer<typeof serviceSpec>;

export const portStatus = object("core/v1.PortStatus", {
  port: required(1, int32),
  protocol: required(2, named("v1.Protocol", documentedEnum("TCP", "UDP", "SCTP"))),
  error: pointer(3, string),
});
export type PortStatus = Infer<typeof portStatus>;

export const loadBalancerIngress = object("core/v1.LoadBalancerIngress", {
  ip: optional(1, string),
  hostname: optional(2, string),
  ipMode: pointer(3, named("v1.LoadBalancerIPMode", string)),
  ports: optional(4, list(portStatus)),
});
export type LoadBalancerIngress = Infer<typeof loadBalancerIngress>;

export const loadBalancerStatus = object("core/v1.LoadBalancerStatus", {
  ingress: optional(1, list(loadBalancerIngress)),
});
export type LoadBalancerStatus = Infer<typeof loadBalancerStatus>;

export const serviceStatus = object("core/v1.ServiceStatus", {
  loadBalancer: optional(1, loadBalancerStatus),
  conditions: optional(2, listMap(condition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
});
export type ServiceStatus = Infer<typeof serviceStatus>;

export const service = object("core/v1.Service", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, serviceSpec),
  status: optional(3, serviceStatus),
});
export type Service = Infer<typeof service>;
