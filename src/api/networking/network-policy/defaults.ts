import type { NetworkPolicy, NetworkPolicyPort } from "./schema.ts";

/** The default policy types: Ingress, and Egress for a policy with egress rules. */
export function setNetworkPolicyDefaults(object: NetworkPolicy): NetworkPolicy {
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
