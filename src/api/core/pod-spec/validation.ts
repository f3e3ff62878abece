/** Rules for pod specs, of pods and of templates. */

import { duplicateField, type FieldError, invalidField, validateEach } from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { dns1123Label, dns1123Subdomain, qualifiedName, validateName } from "../../meta/validation/names.ts";
import { validateLabels } from "../../meta/validation/object-meta.ts";
import { validateChoice, validateContainers } from "../container/validation.ts";
import { validateContainerResources } from "../resources/validation.ts";
import { validateVolumes } from "../volume/validation.ts";
import type { AnnotationValidationOptions } from "./annotation-validation.ts";
import { validateOptionalFeatures } from "./claims-validation.ts";
import { validateDns, validateHostAliases } from "./dns-validation.ts";
import { validateHostProcess, validateHostUsers, validateOs } from "./os-validation.ts";
import { type SchedulingValidationOptions, validateScheduling } from "./scheduling-validation.ts";
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
  const podContext = {
    volumes,
    gracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
    restartPolicy: spec.restartPolicy ?? "",
    hostUsers: spec.hostUsers !== false,
  };
  return [
    ...errors,
    ...validateContainers(spec, path, podContext),
    ...validateHostPorts(spec, child(path, "containers"), options),
    ...validateChoice(spec.restartPolicy ?? "", child(path, "restartPolicy"), RESTART_POLICIES),
    ...validateChoice(spec.dnsPolicy ?? "", child(path, "dnsPolicy"), DNS_POLICIES),
    ...validateLabels(spec.nodeSelector, child(path, "nodeSelector")),
    ...validatePodSecurityContext(spec, child(path, "securityContext"), options),
    ...validateScheduling(spec, path, options),
    ...validateDns(spec, child(path, "dnsConfig")),
    ...validateGates(spec, path),
    ...validateHostProcess(spec, path),
    ...validateHostUsers(spec, path),
    ...validateNames(spec, path),
    ...validateDeadline(spec.activeDeadlineSeconds, child(path, "activeDeadlineSeconds")),
    ...validateTolerations(spec.tolerations ?? [], child(path, "tolerations")),
    ...validateHostAliases(spec.hostAliases ?? [], child(path, "hostAliases")),
    ...(spec.preemptionPolicy === undefined
      ? []
      : validateChoice(spec.preemptionPolicy, child(path, "preemptionPolicy"), PREEMPTION_POLICIES)),
    ...(spec.overhead === undefined
      ? []
      : validateContainerResources({ limits: spec.overhead }, child(path, "overhead"))),
    ...validateOs(spec, path),
    ...validateOptionalFeatures(spec, path, options.name ?? ""),
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

function validateNames(spec: PodSpec, path: string): readonly FieldError[] {
  const formats = [
    ["serviceAccountName", dns1123Subdomain],
    ["nodeName", dns1123Subdomain],
    ["hostname", dns1123Label],
    ["subdomain", dns1123Label],
    ["priorityClassName", dns1123Subdomain],
  ] as const;
  const { runtimeClassName } = spec;
  return [
    ...validateEach(formats, ([field, format]) =>
      spec[field] ? validateName(child(path, field), spec[field], format) : [],
    ),
    ...(runtimeClassName === undefined
      ? []
      : validateName(child(path, "runtimeClassName"), runtimeClassName, dns1123Subdomain)),
  ];
}

function validateDeadline(seconds: number | undefined, path: string): readonly FieldError[] {
  if (seconds === undefined || (seconds >= 1 && seconds <= DEADLINE_MAX)) return [];
  return [invalidField(path, seconds, `must be between 1 and ${DEADLINE_MAX}, inclusive`)];
}
