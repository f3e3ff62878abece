/** Rules for the security context of a pod: users and groups, profiles, sysctls. */
import {
  duplicateField,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { Sysctl } from "../container/security-context.ts";
import {
  validateAppArmorProfile,
  validateId,
  validateSeccompProfile,
  validateWindowsOptions,
} from "../container/security-context-validation.ts";
import type { PodSpec } from "./schema.ts";

export interface PodSecurityValidationOptions {
  readonly allowHostNamespaceSysctls?: boolean;
}

const CHOICES = {
  fsGroupChangePolicy: ["Always", "OnRootMismatch"],
  supplementalGroupsPolicy: ["Merge", "Strict"],
} as const;

export function validatePodSecurityContext(
  spec: PodSpec,
  path: string,
  options: PodSecurityValidationOptions,
): readonly FieldError[] {
  const context = spec.securityContext;
  const validateField = (field: keyof typeof CHOICES): readonly FieldError[] => {
    const value = context?.[field];
    const choices: readonly string[] = CHOICES[field];
    return value === undefined || choices.includes(value) ? [] : [notSupported(child(path, field), value, choices)];
  };
  return [
    ...validateId(context?.fsGroup, child(path, "fsGroup")),
    ...validateId(context?.runAsUser, child(path, "runAsUser")),
    ...validateId(context?.runAsGroup, child(path, "runAsGroup")),
    ...validateEach(context?.supplementalGroups ?? [], (group, i) =>
      validateId(group, index(child(path, "supplementalGroups"), i)),
    ),
    ...(spec.shareProcessNamespace === true && spec.hostPID === true
      ? [
          invalidField(
            child(path, "shareProcessNamespace"),
            true,
            "ShareProcessNamespace and HostPID cannot both be enabled",
          ),
        ]
      : []),
    ...validateSysctls(context?.sysctls ?? [], child(path, "sysctls"), spec, options),
    ...validateField("fsGroupChangePolicy"),
    ...validateSeccompProfile(context?.seccompProfile, child(path, "seccompProfile")),
    ...validateWindowsOptions(context?.windowsOptions, child(path, "windowsOptions")),
    ...validateAppArmorProfile(context?.appArmorProfile, child(path, "appArmorProfile")),
    ...validateField("supplementalGroupsPolicy"),
  ];
}

const SYSCTL = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/;
const SYSCTL_MAX = 253;
const SYSCTL_MESSAGE = `must have at most ${SYSCTL_MAX} characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`;

function validateSysctls(
  sysctls: readonly Sysctl[],
  path: string,
  spec: PodSpec,
  options: PodSecurityValidationOptions,
): readonly FieldError[] {
  const seen = new Set<string>();
  return validateEach(sysctls, ({ name }, i) => {
    const at = child(index(path, i), "name");
    const errors: FieldError[] = [];
    if (name === "") errors.push(requiredField(at));
    else if (name.length > SYSCTL_MAX || !SYSCTL.test(name)) errors.push(invalidField(at, name, SYSCTL_MESSAGE));
    else if (seen.has(name)) errors.push(duplicateField(at, name));
    seen.add(name);
    const group = sysctlGroup(name);
    const shared = (group === "net" && spec.hostNetwork === true) || (group === "ipc" && spec.hostIPC === true);
    if (shared && options.allowHostNamespaceSysctls !== true) {
      errors.push(
        invalidField(at, name, `may not be specified when 'host${group === "net" ? "Network" : "IPC"}' is true`),
      );
    }
    return errors;
  });
}

const IPC_SYSCTLS = new Set([
  "kernel.sem",
  "kernel.shmall",
  "kernel.shmmax",
  "kernel.shmmni",
  "kernel.shm_rmid_forced",
  "kernel.msgmax",
  "kernel.msgmnb",
  "kernel.msgmni",
]);

/**
 * The kernel namespace of a sysctl. The first separator of the name decides whether dots or slashes separate its parts.
 */
function sysctlGroup(name: string): "ipc" | "net" | undefined {
  const dotted = /^[^./]*\//.test(name) ? name.replace(/[./]/g, (separator) => (separator === "." ? "/" : ".")) : name;
  if (IPC_SYSCTLS.has(dotted) || dotted.startsWith("fs.mqueue.")) return "ipc";
  return dotted.startsWith("net.") ? "net" : undefined;
}
