/** Files written for Kubernetes' node agent: same fields, a few other names. */
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

/** True for both spellings; a file must not mix them. */
export function isConfigKind(apiVersion: unknown, kind: unknown): boolean {
  return (
    (apiVersion === configApiVersion && kind === configKind) ||
    (apiVersion === kubernetes.apiVersion && kind === kubernetes.kind)
  );
}

/** `value` with our names. Only files of the Kubernetes kind are respelt: in others its names are unknown fields. */
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

/** The names under which a field may stand in a file. */
export function fieldAliases(field: string): readonly string[] {
  const original = originalNames.get(field);
  return [field, ...(original === undefined ? [] : [original]), field.replaceAll("Svclet", "Kubelet")];
}
