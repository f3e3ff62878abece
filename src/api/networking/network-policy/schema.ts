import {
  documentedEnum,
  int32,
  intOrString,
  list,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const networkPolicyPort = object("networking/v1.NetworkPolicyPort", {
  protocol: pointer(1, named("v1.Protocol", documentedEnum("TCP", "UDP", "SCTP"))),
  port: pointer(2, intOrString),
  endPort: pointer(3, int32),
});
export type NetworkPolicyPort = Infer<typeof networkPolicyPort>;

export const ipBlock = object("networking/v1.IPBlock", {
  cidr: required(1, string),
  except: optional(2, list(string)),
});
export type IPBlock = Infer<typeof ipBlock>;

export const networkPolicyPeer = object("networking/v1.NetworkPolicyPeer", {
  podSelector: pointer(1, labelSelector),
  namespaceSelector: pointer(2, labelSelector),
  ipBlock: pointer(3, ipBlock),
});
export type NetworkPolicyPeer = Infer<typeof networkPolicyPeer>;

export const networkPolicyIngressRule = object("networking/v1.NetworkPolicyIngressRule", {
  ports: optional(1, list(networkPolicyPort)),
  from: optional(2, list(networkPolicyPeer)),
});
export type NetworkPolicyIngressRule = Infer<typeof networkPolicyIngressRule>;

export const networkPolicyEgressRule = object("networking/v1.NetworkPolicyEgressRule", {
  ports: optional(1, list(networkPolicyPort)),
  to: optional(2, list(networkPolicyPeer)),
});
export type NetworkPolicyEgressRule = Infer<typeof networkPolicyEgressRule>;

export const networkPolicySpec = object("networking/v1.NetworkPolicySpec", {
  podSelector: required(1, labelSelector),
  ingress: optional(2, list(networkPolicyIngressRule)),
  egress: optional(3, list(networkPolicyEgressRule)),
  policyTypes: optional(4, list(named("v1.PolicyType", documentedEnum("Ingress", "Egress")))),
});
export type NetworkPolicySpec = Infer<typeof networkPolicySpec>;

export const networkPolicy = object("networking/v1.NetworkPolicy", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, networkPolicySpec),
});
export type NetworkPolicy = Infer<typeof networkPolicy>;
