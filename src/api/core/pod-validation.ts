/**
 * Cross-field rules for pods, as Kubernetes 1.33 checks them on create and on update. Types, enums and the presence of
 * required members have been checked by the schema before.
 */
import { deepEqual } from "../../schema/equal.ts";
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
} from "../../schema/field-error.ts";
import { child, index } from "../../schema/field-path.ts";
import { dns1123Label, dns1123Subdomain, labelValue, qualifiedName } from "../meta/names.ts";
import type { Toleration } from "./affinity.ts";
import type { Container } from "./container.ts";
import { type PodSurroundings, validateContainer } from "./container-validation.ts";
import type { Pod, PodSpec } from "./pod.ts";
import { validateScheduling } from "./scheduling-validation.ts";
import { validateVolumes } from "./volume-validation.ts";

const MAX_ID = 2147483647;

export function validatePod(pod: Pod): readonly FieldError[] {
  return pod.spec === undefined
    ? [requiredField("spec.containers")]
    : [...validatePodSpec(pod.spec, "spec"), ...onlyOnCreate(pod.spec)];
}

function onlyOnCreate(spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(forbiddenField("spec.ephemeralContainers", "cannot be set on create"));
  }
  if (spec.nodeName && (spec.schedulingGates ?? []).length > 0) {
    errors.push(forbiddenField("spec.nodeName", "cannot be set until all schedulingGates have been cleared"));
  }
  return errors;
}

export function validatePodSpec(spec: PodSpec, path: string): readonly FieldError[] {
  const volumes = validateVolumes(spec.volumes ?? [], child(path, "volumes"));
  const pod: PodSurroundings = {
    volumes: volumes.names,
    hostNetwork: spec.hostNetwork === true,
    gracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
  };
  return [
    ...volumes.errors,
    ...validateContainers(spec, path, pod),
    ...validateTimes(spec, path),
    ...validateNames(spec, path),
    ...validateNodeSelector(spec.nodeSelector ?? {}, child(path, "nodeSelector")),
    ...(spec.tolerations ?? []).flatMap((t, i) => validateToleration(t, index(child(path, "tolerations"), i))),
    ...validateScheduling(spec, path),
    ...validateSecurity(spec, path),
    ...validateDns(spec, path),
  ];
}

function validateContainers(spec: PodSpec, path: string, pod: PodSurroundings): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.containers.length === 0) errors.push(requiredField(child(path, "containers")));
  const names = new Set<string>();
  const visit = (containers: readonly Container[], list: string, init: boolean): void => {
    for (const [i, container] of containers.entries()) {
      const at = index(child(path, list), i);
      const role = !init ? "main" : container.restartPolicy === "Always" ? "sidecar" : "init";
      errors.push(...validateContainer(container, at, role, pod));
      if (names.has(container.name)) errors.push(duplicateField(child(at, "name"), container.name));
      names.add(container.name);
    }
  };
  visit(spec.containers, "containers", false);
  visit(spec.initContainers ?? [], "initContainers", true);
  return errors;
}

function validateTimes(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const grace = spec.terminationGracePeriodSeconds ?? 0;
  if (grace < 0) {
    errors.push(
      invalidField(child(path, "terminationGracePeriodSeconds"), grace, "must be greater than or equal to 0"),
    );
  }
  const deadline = spec.activeDeadlineSeconds;
  if (deadline !== undefined && (deadline < 1 || deadline > MAX_ID)) {
    const detail = `must be between 1 and ${MAX_ID}, inclusive`;
    errors.push(invalidField(child(path, "activeDeadlineSeconds"), deadline, detail));
  }
  return errors;
}

function validateNames(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const check = (field: string, value: string | undefined, form: (text: string) => readonly string[]): void => {
    if (!value) return;
    errors.push(...form(value).map((problem) => invalidField(child(path, field), value, problem)));
  };
  check("nodeName", spec.nodeName, dns1123Subdomain);
  check("serviceAccountName", spec.serviceAccountName, dns1123Subdomain);
  check("hostname", spec.hostname, dns1123Label);
  check("subdomain", spec.subdomain, dns1123Label);
  check("priorityClassName", spec.priorityClassName, dns1123Subdomain);
  check("runtimeClassName", spec.runtimeClassName, dns1123Subdomain);
  const gates = new Set<string>();
  for (const [i, gate] of (spec.schedulingGates ?? []).entries()) {
    const at = index(child(path, "schedulingGates"), i);
    errors.push(...qualifiedName(gate.name).map((problem) => invalidField(at, gate.name, problem)));
    if (gates.has(gate.name)) errors.push(duplicateField(at, gate.name));
    gates.add(gate.name);
  }
  return errors;
}

function validateNodeSelector(selector: Readonly<Record<string, string>>, path: string): FieldError[] {
  return Object.entries(selector).flatMap(([name, value]) => [
    ...qualifiedName(name).map((problem) => invalidField(path, name, problem)),
    ...labelValue(value).map((problem) => invalidField(path, value, problem)),
  ]);
}

export function validateToleration(toleration: Toleration, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { key = "", operator = "", value = "", effect = "", tolerationSeconds } = toleration;
  if (key !== "") {
    errors.push(...qualifiedName(key).map((problem) => invalidField(child(path, "key"), key, problem)));
  } else if (operator !== "Exists") {
    const detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
    errors.push(invalidField(child(path, "operator"), operator, detail));
  }
  if (tolerationSeconds !== undefined && effect !== "NoExecute") {
    const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    errors.push(invalidField(child(path, "effect"), effect, detail));
  }
  if (operator === "Exists" && value !== "") {
    errors.push(invalidField(child(path, "operator"), value, "value must be empty when `operator` is 'Exists'"));
  } else if (operator !== "Exists") {
    errors.push(...labelValue(value).map((problem) => invalidField(child(path, "operator"), value, problem)));
  }
  return errors;
}

function validateSecurity(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const at = child(path, "securityContext");
  const id = (value: number | undefined, field: string): void => {
    if (value === undefined || (value >= 0 && value <= MAX_ID)) return;
    errors.push(invalidField(field, value, `must be between 0 and ${MAX_ID}, inclusive`));
  };
  id(spec.securityContext?.runAsUser, child(at, "runAsUser"));
  id(spec.securityContext?.runAsGroup, child(at, "runAsGroup"));
  id(spec.securityContext?.fsGroup, child(at, "fsGroup"));
  for (const [i, group] of (spec.securityContext?.supplementalGroups ?? []).entries()) {
    id(group, index(child(at, "supplementalGroups"), i));
  }
  if (spec.shareProcessNamespace === true && spec.hostPID === true) {
    const detail = "ShareProcessNamespace and HostPID cannot both be enabled";
    errors.push(invalidField(child(at, "shareProcessNamespace"), true, detail));
  }
  return errors;
}

function validateDns(spec: PodSpec, path: string): FieldError[] {
  if (spec.dnsPolicy !== "None") return [];
  const at = child(path, "dnsConfig");
  if (spec.dnsConfig === undefined) return [requiredField(at, "must provide `dnsConfig` when `dnsPolicy` is None")];
  if ((spec.dnsConfig.nameservers ?? []).length > 0) return [];
  const detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
  return [requiredField(child(at, "nameservers"), detail)];
}

const MUTABLE =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** A pod's spec is fixed, but for a short list of fields. */
export function validatePodUpdate(next: Pod, previous: Pod): readonly FieldError[] {
  if (next.spec === undefined || previous.spec === undefined) return [];
  const counts = validateContainerCount(next.spec, previous.spec);
  if (counts.length > 0) return counts;
  return [
    ...validateDeadline(next.spec, previous.spec),
    ...validateTolerationAdditions(next.spec, previous.spec),
    ...(deepEqual(masked(next.spec, previous.spec), previous.spec) ? [] : [forbiddenField("spec", MUTABLE)]),
  ];
}

function validateContainerCount(next: PodSpec, previous: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (next.containers.length !== previous.containers.length) {
    errors.push(forbiddenField("spec.containers", "pod updates may not add or remove containers"));
  }
  if ((next.initContainers ?? []).length !== (previous.initContainers ?? []).length) {
    errors.push(forbiddenField("spec.initContainers", "pod updates may not add or remove containers"));
  }
  return errors;
}

function validateDeadline(next: PodSpec, previous: PodSpec): FieldError[] {
  const [now, before] = [next.activeDeadlineSeconds, previous.activeDeadlineSeconds];
  if (before === undefined || (now !== undefined && now <= before)) return [];
  const field = "spec.activeDeadlineSeconds";
  return now === undefined
    ? [invalidField(field, null, "must not update from a positive integer to nil value")]
    : [invalidField(field, now, "must be less than or equal to previous value")];
}

function validateTolerationAdditions(next: PodSpec, previous: PodSpec): FieldError[] {
  const bare = ({ tolerationSeconds: _, ...rest }: Toleration) => rest;
  const kept = (previous.tolerations ?? []).every((old) =>
    (next.tolerations ?? []).some((toleration) => deepEqual(bare(old), bare(toleration))),
  );
  const detail = "existing toleration can not be modified except its tolerationSeconds";
  return kept ? [] : [forbiddenField("spec.tolerations", detail)];
}

/** The new spec with everything that may change set back to what it was; any other difference then shows. */
function masked(next: PodSpec, previous: PodSpec): PodSpec {
  const restore = (containers: readonly Container[], old: readonly Container[] | undefined): Container[] =>
    containers.map((container, i) => withOptional(container, "image", old?.[i]?.image));
  const result: PodSpec = {
    ...next,
    containers: restore(next.containers, previous.containers),
    ...(next.initContainers === undefined
      ? {}
      : { initContainers: restore(next.initContainers, previous.initContainers) }),
  };
  const restored = withOptional(
    withOptional(result, "activeDeadlineSeconds", previous.activeDeadlineSeconds),
    "tolerations",
    previous.tolerations,
  );
  const becameOne = next.terminationGracePeriodSeconds === 1 && (previous.terminationGracePeriodSeconds ?? 0) < 0;
  return becameOne
    ? withOptional(restored, "terminationGracePeriodSeconds", previous.terminationGracePeriodSeconds)
    : restored;
}

/** `object` with `field` set, or without it where the value is undefined. */
function withOptional<T extends object, K extends keyof T>(object: T, field: K, value: T[K] | undefined): T {
  const { [field]: _, ...rest } = object;
  return (value === undefined ? rest : { ...rest, [field]: value }) as T;
}
