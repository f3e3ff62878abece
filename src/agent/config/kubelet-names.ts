/** Names of fields and gates in kubelet's configuration files that are different here. */
import { isPlainObject, setMember } from "../../schema/value/plain-object.ts";

export const configApiVersion = "svclet.config.svc.io/v1beta1";
export const configKind = "SvcletConfiguration";

const kubernetes = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };

const fieldNames: Readonly<Record<string, string>> = {
  kubeletCgroups: "svcletCgroups",
  kubeAPIQPS: "svcAPIQPS",
  kubeAPIBurst: "svcAPIBurst",
  kubeReserved: "svcReserved",
  kubeReservedCgroup: "svcReservedCgroup",
};

const originalNames = new Map(Object.entries(fieldNames).map(([theirs, ours]) => [ours, theirs]));

/** Accepts svclet's and kubelet's apiVersion and kind; a file must not mix them. */
export function isConfigKind(apiVersion: unknown, kind: unknown): boolean {
  return (
    (apiVersion === configApiVersion && kind === configKind) ||
    (apiVersion === kubernetes.apiVersion && kind === kubernetes.kind)
  );
}

/** Converts kubelet's names. Only in files of kubelet's kind: in others these names are unknown fields. */
export function renameKubeletFields(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (value.kind !== kubernetes.kind) return value;
  const result: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    setMember(result, Object.hasOwn(fieldNames, name) ? fieldNames[name]! : name, member);
  }
  const { enforceNodeAllocatable: enforce, featureGates: gates } = value;
  if (Array.isArray(enforce)) {
    result.enforceNodeAllocatable = enforce.map((name) => (name === "kube-reserved" ? "svc-reserved" : name));
  }
  if (isPlainObject(gates)) {
    result.featureGates = Object.fromEntries(
      Object.entries(gates).map(([name, on]) => [name.replaceAll("Kubelet", "Svclet"), on]),
    );
  }
  return result;
}

/** The names that a field may have in a file. */
export function fieldAliases(field: string): readonly string[] {
  const original = originalNames.get(field);
  return [field, ...(original === undefined ? [] : [original]), field.replaceAll("Svclet", "Kubelet")];
}
