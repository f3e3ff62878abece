import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type NetworkPolicy, networkPolicy } from "./network-policy.ts";

export const networkPolicyKind: Kind<NetworkPolicy> = {
  group: "networking.svc.io",
  version: "v1",
  kind: "NetworkPolicy",
  listKind: "NetworkPolicyList",
  plural: "networkpolicies",
  singular: "networkpolicy",
  shortNames: ["netpol"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "networkpolicies",
  schema: networkPolicy,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
