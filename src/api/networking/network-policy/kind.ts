import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type NetworkPolicy, networkPolicy } from "./schema.ts";
import { networkPolicyStrategy } from "./strategy.ts";

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
  columns: [nameColumn, column("Pod-Selector", ({ spec }) => formatLabelSelector(spec?.podSelector)), ageColumn],
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadataUpdate", "spec"],
  strategy: networkPolicyStrategy,
};
