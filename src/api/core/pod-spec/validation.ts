/** Rules for pod specs, of pods and of templates. */

import { duplicateField, type FieldError, invalidField, validateEach } from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { dns1123Label, dns1123Subdomain, qualifiedName, validateName } from "../../meta/validation/names.ts";
import { validateLabels } from "../../meta/validation/object-meta.ts";
import { validateChoice, validateContainers } from "../container/validation.ts";
import { validateContainerResources } from "../resources/validation.ts";
import { validateVolumes } from "../volume/validation.ts";
import type { AnnotationValidationOptions } from "./annotation-validation.ts";
import { validateClaims, validatePodResources, validateStopSignals } from "./claims-validation.ts";
import { validateDns, validateHostAliases } from "./dns-validation.ts";
import { validateHostProcess, validateHostUsers, validateOs } from "./os-validation.ts";
import { type SchedulingValidationOptions, validateAffinity, validateSpread } from "./scheduling-validation.ts";
import type { PodSpec } from "./schema.ts";
import { validatePodSecurityContext } from "./security-validation.ts";
import { validateTolerations } from "./toleration-validation.ts";

export interface PodSpecValidationOptions extends SchedulingValidationOptions, AnnotationValidationOptions {
  /** The spec of a pod. In templates, fields that pods default may be absent. */
  readonly isPod?: boolean;
  /** The pod's name; absent in templates. */
  readonly name?: string;
  /** Accepts sysctls of host namespaces, for pods stored with them. */
  readonly allowHostNamespaceSysctls?: boolean;
}

const RESTART_POLICIES = ["Always", "OnFailure", "Never"];
const DNS_POLICIES = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const PREEMPTION_POLICIES = ["PreemptLowerPriority", "Never"];
const DEADLINE_MAX = 2147483647;

export function validatePodSpec(
  spec: PodSpec,
  path: string,
  options: PodSpecValidationOptions = {},
): readonly FieldError[] {
  const { errors, volumes } = validateVolumes(spec.volumes ?? [], child(path, "volumes"), options.name ?? "");
  const claims = spec.resourceClaims ?? [];
  const claimNames = new Set(claims.map(({ name }) => name).filter((name) => name !== ""));
  const podContext = {
    volumes,
    gracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
    restartPolicy: spec.restartPolicy ?? "",
    hostUsers: spec.hostUsers !== false,
    claimNames,
  };
  // In Kubernetes' order.
  return [
    ...errors,
    ...validateClaims(claims, child(path, "resourceClaims")),
    ...validateContainers(spec, path, podContext),
    ...validatePodResources(spec, child(path, "resources"), claimNames),
    ...validateHostPorts(spec, child(path, "containers"), options),
    ...validateChoice(spec.restartPolicy ?? "", child(path, "restartPolicy"), RESTART_POLICIES),
    ...validateChoice(spec.dnsPolicy ?? "", child(path, "dnsPolicy"), DNS_POLICIES),
    ...validateLabels(spec.nodeSelector, child(path, "nodeSelector")),
    ...validatePodSecurityContext(spec, child(path, "securityContext"), options),
    ...validateAffinity(spec.affinity, child(path, "affinity"), options),
    ...validateDns(spec, child(path, "dnsConfig")),
    ...validateGates(spec, path),
    ...validateSpread(spec.topologySpreadConstraints ?? [], child(path, "topologySpreadConstraints"), options),
    ...validateHostProcess(spec, path),
    ...validateHostUsers(spec, path),
    ...validateOptionalName(spec, path, "serviceAccountName", dns1123Subdomain),
    ...validateOptionalName(spec, path, "nodeName", dns1123Subdomain),
    ...validateDeadline(spec.activeDeadlineSeconds, child(path, "activeDeadlineSeconds")),
    ...validateOptionalName(spec, path, "hostname", dns1123Label),
    ...validateOptionalName(spec, path, "subdomain", dns1123Label),
    ...validateTolerations(spec.tolerations ?? [], child(path, "tolerations")),
    ...validateHostAliases(spec.hostAliases ?? [], child(path, "hostAliases")),
    ...validateOptionalName(spec, path, "priorityClassName", dns1123Subdomain),
    ...(spec.runtimeClassName === undefined
      ? []
      : validateName(child(path, "runtimeClassName"), spec.runtimeClassName, dns1123Subdomain)),
    ...(spec.preemptionPolicy === undefined
      ? []
      : validateChoice(spec.preemptionPolicy, child(path, "preemptionPolicy"), PREEMPTION_POLICIES)),
    ...(spec.overhead === undefined
      ? []
      : validateContainerResources({ limits: spec.overhead }, child(path, "overhead"))),
    ...validateOs(spec, path),
    ...validateStopSignals(spec, path),
  ];
}

/** With hostNetwork, host ports equal container ports; templates may leave host ports to the pod's defaults. */
function validateHostPorts(spec: PodSpec, path: string, options: PodSpecValidationOptions): readonly FieldError[] {
  if (spec.hostNetwork !== true) return [];
  return validateEach(spec.containers, ({ ports = [] }, i) =>
    validateEach(ports, ({ hostPort = 0, containerPort }, portIndex) => {
      if (hostPort === containerPort || (hostPort === 0 && options.isPod !== true)) return [];
      const at = child(index(child(index(path, i), "ports"), portIndex), "hostPort");
      return [invalidField(at, hostPort, "must match `containerPort` when `hostNetwork` is true")];
    }),
  );
}

function validateGates(spec: PodSpec, path: string): readonly FieldError[] {
  const gates = (spec.schedulingGates ?? []).map(({ name }) => name);
  const seen = new Set<string>();
  return [
    ...validateEach(spec.readinessGates ?? [], ({ conditionType }, i) =>
      validateName(child(index(child(path, "readinessGates"), i), "conditionType"), conditionType, qualifiedName),
    ),
    ...validateEach(gates, (name, i) => {
      const at = index(child(path, "schedulingGates"), i);
      return [
        ...validateName(at, name, qualifiedName),
        ...(seen.size === seen.add(name).size ? [duplicateField(at, name)] : []),
      ];
    }),
  ];
}

type NameField = "serviceAccountName" | "nodeName" | "hostname" | "subdomain" | "priorityClassName";

/** An empty name counts as absent. */
function validateOptionalName(
  spec: PodSpec,
  path: string,
  field: NameField,
  format: (text: string) => readonly string[],
): readonly FieldError[] {
  const { [field]: name = "" } = spec;
  return name === "" ? [] : validateName(child(path, field), name, format);
}

function validateDeadline(seconds: number | undefined, path: string): readonly FieldError[] {
  if (seconds === undefined || (seconds >= 1 && seconds <= DEADLINE_MAX)) return [];
  return [invalidField(path, seconds, `must be between 1 and ${DEADLINE_MAX}, inclusive`)];
}
