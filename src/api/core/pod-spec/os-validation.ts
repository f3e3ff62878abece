/** Rules for fields that the pod's operating system does not support, and for user namespaces. */
import {
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { containersWithPaths } from "./containers.ts";
import type { PodSpec } from "./schema.ts";

const SYSTEMS = ["linux", "windows"];

/** `path` is the path of the spec. */
export function validateOs(spec: PodSpec, path: string): readonly FieldError[] {
  const name = spec.os?.name;
  if (name === undefined) return [];
  if (name === "") return [requiredField(child(path, "os.name"), "cannot be empty")];
  if (name === "linux") return validateLinux(spec, path);
  return name === "windows" ? validateWindows(spec, path) : [notSupported(child(path, "os"), name, SYSTEMS)];
}

function validateLinux(spec: PodSpec, path: string): readonly FieldError[] {
  const detail = "windows options cannot be set for a linux pod";
  const forbid = (at: string): FieldError => forbiddenField(child(at, "securityContext.windowsOptions"), detail);
  return [
    ...(spec.securityContext?.windowsOptions === undefined ? [] : [forbid(path)]),
    ...containersWithPaths(spec, path)
      .filter(({ container }) => container.securityContext?.windowsOptions !== undefined)
      .map(({ at }) => forbid(at)),
  ];
}

/** In Kubernetes' order: fields of the spec and of its security context. */
const WINDOWS_POD = [
  "securityContext.appArmorProfile",
  "securityContext.seLinuxOptions",
  "hostUsers",
  "hostPID",
  "hostIPC",
  "securityContext.seccompProfile",
  "securityContext.fsGroup",
  "securityContext.fsGroupChangePolicy",
  "securityContext.sysctls",
  "shareProcessNamespace",
  "securityContext.runAsUser",
  "securityContext.runAsGroup",
  "securityContext.supplementalGroups",
  "securityContext.supplementalGroupsPolicy",
  "securityContext.seLinuxChangePolicy",
] as const;
const WINDOWS_CONTAINER = [
  "appArmorProfile",
  "seLinuxOptions",
  "seccompProfile",
  "capabilities",
  "readOnlyRootFilesystem",
  "privileged",
  "allowPrivilegeEscalation",
  "procMount",
  "runAsUser",
  "runAsGroup",
] as const;

function validateWindows(spec: PodSpec, path: string): readonly FieldError[] {
  const forbid = (field: string): FieldError => forbiddenField(field, "cannot be set for a windows pod");
  return [
    ...WINDOWS_POD.filter((name) => isSet(fieldValue(spec, name))).map((name) => forbid(child(path, name))),
    ...validateEach(containersWithPaths(spec, path), (each) =>
      WINDOWS_CONTAINER.filter((name) => isSet(each.container.securityContext?.[name])).map((name) =>
        forbid(child(each.at, `securityContext.${name}`)),
      ),
    ),
  ];
}

/** The value of a field; `hostPID` and `hostIPC` count as absent when false. */
function fieldValue(spec: PodSpec, path: (typeof WINDOWS_POD)[number]): unknown {
  if (path === "hostPID" || path === "hostIPC") return spec[path] === true ? true : undefined;
  return path.split(".").reduce<unknown>((object, name) => (object as Members | undefined)?.[name], spec);
}

type Members = Readonly<Record<string, unknown>>;

function isSet(value: unknown): boolean {
  return value !== undefined && !(Array.isArray(value) && value.length === 0);
}

/** HostProcess containers of Windows: all containers of a pod or none, with hostNetwork. */
export function validateHostProcess(spec: PodSpec, path: string): readonly FieldError[] {
  const podValue = spec.securityContext?.windowsOptions?.hostProcess;
  const errors: FieldError[] = [];
  let containers = 0;
  let count = 0;
  for (const each of containersWithPaths(spec, path)) {
    containers += 1;
    const containerValue = each.container.securityContext?.windowsOptions?.hostProcess;
    const differs = podValue !== undefined && containerValue !== undefined && podValue !== containerValue;
    if (differs && errors.length < errorsMax) {
      const detail = `pod hostProcess value must be identical if both are specified, was ${podValue}`;
      errors.push(invalidField(child(each.at, "securityContext.windowsOptions.hostProcess"), containerValue, detail));
    }
    if (containerValue ?? podValue) count += 1;
  }
  if (count === 0) return errors;
  if (count !== containers) {
    const detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
    errors.push(invalidField(path, "", detail));
  }
  if (spec.hostNetwork !== true) {
    const detail = "hostNetwork must be true if pod contains any hostProcess containers";
    errors.push(invalidField(child(path, "hostNetwork"), false, detail));
  }
  return errors;
}

/** A pod with its own user namespace cannot use host namespaces. */
export function validateHostUsers(spec: PodSpec, path: string): readonly FieldError[] {
  if (spec.hostUsers !== false) return [];
  return (["hostNetwork", "hostPID", "hostIPC"] as const)
    .filter((name) => spec[name] === true)
    .map((name) => forbiddenField(child(path, name), "when `hostUsers` is false"));
}
