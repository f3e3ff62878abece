import { deepEqual } from "../../../schema/value/equal.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { type NetworkPolicy, type NetworkPolicyPort, networkPolicy } from "./schema.ts";
import { networkPolicyWarnings, validateNetworkPolicy } from "./validation.ts";

/** A policy that says nothing of its directions is about ingress, and about egress when it has rules for it. */
function setNetworkPolicyDefaults(object: NetworkPolicy): NetworkPolicy {
  const { spec } = object;
  if (spec === undefined) return { ...object, spec: { podSelector: {}, policyTypes: ["Ingress"] } };
  const { ingress, egress, policyTypes } = spec;
  const filled = {
    ...spec,
    ...(ingress === undefined ? {} : { ingress: ingress.map(setProtocolDefaults) }),
    ...(egress === undefined ? {} : { egress: egress.map(setProtocolDefaults) }),
  };
  if ((policyTypes ?? []).length > 0) return { ...object, spec: filled };
  const types = (egress ?? []).length > 0 ? (["Ingress", "Egress"] as const) : (["Ingress"] as const);
  return { ...object, spec: { ...filled, policyTypes: types } };
}

function setProtocolDefaults<R extends { readonly ports?: readonly NetworkPolicyPort[] | undefined }>(rule: R): R {
  if (rule.ports === undefined) return rule;
  return { ...rule, ports: rule.ports.map((port) => ({ ...port, protocol: port.protocol ?? "TCP" })) };
}

const networkPolicyStrategy: Strategy<NetworkPolicy> = {
  setDefaults: setNetworkPolicyDefaults,
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.spec, previous.spec)),
  validate: validateNetworkPolicy,
  warnings: networkPolicyWarnings,
};

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
  columns: [
    nameColumn,
    column("Pod-Selector", ({ spec }) => formatLabelSelector(spec?.podSelector), "The pods that the policy is about."),
    ageColumn,
  ],
  selectableFields: {},
  strategy: networkPolicyStrategy,
};
