import {
  documentedEnum,
  inline,
  int32,
  list,
  named,
  object,
  oneOf,
  optional,
  pointer,
  required,
  requiredPointer,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { typedLocalObjectReference } from "../../core/references/object-reference.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const serviceBackendPort = object(
  "networking/v1.ServiceBackendPort",
  {
    name: optional(1, string),
    number: optional(2, int32),
  },
  { atomic: true },
);
export type ServiceBackendPort = Infer<typeof serviceBackendPort>;

export const ingressServiceBackend = object("networking/v1.IngressServiceBackend", {
  name: required(1, string),
  port: optional(2, serviceBackendPort),
});
export type IngressServiceBackend = Infer<typeof ingressServiceBackend>;

export const ingressBackend = object("networking/v1.IngressBackend", {
  service: pointer(4, ingressServiceBackend),
  resource: pointer(3, typedLocalObjectReference),
});
export type IngressBackend = Infer<typeof ingressBackend>;

export const ingressTLS = object("networking/v1.IngressTLS", {
  hosts: optional(1, list(string)),
  secretName: optional(2, string),
});
export type IngressTLS = Infer<typeof ingressTLS>;

export const httpIngressPath = object("networking/v1.HTTPIngressPath", {
  path: optional(1, string),
  pathType: requiredPointer(3, named("v1.PathType", documentedEnum("Exact", "Prefix", "ImplementationSpecific"))),
  backend: required(2, ingressBackend),
});
export type HTTPIngressPath = Infer<typeof httpIngressPath>;

export const httpIngressRuleValue = object("networking/v1.HTTPIngressRuleValue", {
  paths: required(1, list(httpIngressPath)),
});
export type HTTPIngressRuleValue = Infer<typeof httpIngressRuleValue>;

export const ingressRuleValue = object("networking/v1.IngressRuleValue", {
  http: pointer(1, httpIngressRuleValue),
});
export type IngressRuleValue = Infer<typeof ingressRuleValue>;

export const ingressRule = object("networking/v1.IngressRule", {
  host: optional(1, string),
  ingressRuleValue: inline(2, ingressRuleValue),
});
export type IngressRule = Infer<typeof ingressRule>;

export const ingressSpec = object("networking/v1.IngressSpec", {
  ingressClassName: pointer(4, string),
  defaultBackend: pointer(1, ingressBackend),
  tls: optional(2, list(ingressTLS)),
  rules: optional(3, list(ingressRule)),
});
export type IngressSpec = Infer<typeof ingressSpec>;

export const ingressPortStatus = object("networking/v1.IngressPortStatus", {
  port: required(1, int32),
  protocol: required(2, named("v1.Protocol", oneOf("TCP", "UDP", "SCTP"))),
  error: pointer(3, string),
});
export type IngressPortStatus = Infer<typeof ingressPortStatus>;

export const ingressLoadBalancerIngress = object("networking/v1.IngressLoadBalancerIngress", {
  ip: optional(1, string),
  hostname: optional(2, string),
  ports: optional(4, list(ingressPortStatus)),
});
export type IngressLoadBalancerIngress = Infer<typeof ingressLoadBalancerIngress>;

export const ingressLoadBalancerStatus = object("networking/v1.IngressLoadBalancerStatus", {
  ingress: optional(1, list(ingressLoadBalancerIngress)),
});
export type IngressLoadBalancerStatus = Infer<typeof ingressLoadBalancerStatus>;

export const ingressStatus = object("networking/v1.IngressStatus", {
  loadBalancer: optional(1, ingressLoadBalancerStatus),
});
export type IngressStatus = Infer<typeof ingressStatus>;

export const ingress = object("networking/v1.Ingress", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, ingressSpec),
  status: optional(3, ingressStatus),
});
export type Ingress = Infer<typeof ingress>;
