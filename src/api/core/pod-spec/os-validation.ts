/** What a pod may not ask of the operating system it is for, nor together with the node's own namespaces. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { containersWithPaths } from "./containers.ts";
import type { PodSpec } from "./schema.ts";

const SYSTEMS = ["linux", "windows"];

/** `path` is that of the spec. */
export function validateOs(spec: PodSpec, path: string): readonly FieldError[] {
  const name = spec.os?.name;
  if (name === undefined) return [];
  if (name === "") return [requiredField(child(path, "os.name"), "cannot be empty")];
  if (name === "linux") return validateLinux(spec, path);
  return name === "windows" ? validateWindows(spec, path) : [notSupported(child(path, "os"), name, SYSTEMS)];
}

function validateLinux(spec: PodSpec, path: string): readonly FieldError[] {
  const detail = "windows options cannot be set for a linux pod";
  const places = [
    { context: spec.securityContext, at: path },
    ...containersWithPaths(spec, path).map(({ container, at }) => ({ context: container.securityContext, at })),
  ];
  return places
    .filter(({ context }) => context?.windowsOptions !== undefined)
    .map(({ at }) => forbiddenField(child(at, "securityContext.windowsOptions"), detail));
}

/** In Kubernetes' order: members of the spec, and of its security context. */
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
    ...WINDOWS_POD.filter((name) => isSet(memberOf(spec, name))).map((name) => forbid(child(path, name))),
    ...containersWithPaths(spec, path).flatMap(({ container, at }) =>
      WINDOWS_CONTAINER.filter((name) => isSet(container.securityContext?.[name])).map((name) =>
        forbid(child(at, `securityContext.${name}`)),
      ),
    ),
  ];
}

/** Flags that are off count as absent. */
function memberOf(spec: PodSpec, path: (typeof WINDOWS_POD)[number]): unknown {
  if (path === "hostPID" || path === "hostIPC") return spec[path] === true ? true : undefined;
  return path.split(".").reduce<unknown>((object, name) => (object as Members | undefined)?.[name], spec);
}

type Members = Readonly<Record<string, unknown>>;

function isSet(value: unknown): boolean {
  return value !== undefined && !(Array.isArray(value) && value.length === 0);
}

/** Containers that are processes of a Windows node: all of a pod's or none, and on the node's network. */
export function validateHostProcess(spec: PodSpec, path: string): readonly FieldError[] {
  const wanted = spec.securityContext?.windowsOptions?.hostProcess;
  const containers = containersWithPaths(spec, path);
  const errors: FieldError[] = [];
  let count = 0;
  for (const { container, at } of containers) {
    const own = container.securityContext?.windowsOptions?.hostProcess;
    if (wanted !== undefined && own !== undefined && wanted !== own) {
      const detail = `pod hostProcess value must be identical if both are specified, was ${wanted}`;
      errors.push(invalidField(child(at, "securityContext.windowsOptions.hostProcess"), own, detail));
    }
    if (own ?? wanted) count += 1;
  }
  if (count === 0) return errors;
  if (count !== containers.length) {
    const detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
    errors.push(invalidField(path, "", detail));
  }
  if (spec.hostNetwork !== true) {
    const detail = "hostNetwork must be true if pod contains any hostProcess containers";
    errors.push(invalidField(child(path, "hostNetwork"), false, detail));
  }
  return errors;
}

/** Users of the pod's own go with none of the node's namespaces. */
export function validateHostUsers(spec: PodSpec, path: string): readonly FieldError[] {
  if (spec.hostUsers !== false) return [];
  return (["hostNetwork", "hostPID", "hostIPC"] as const)
    .filter((name) => spec[name] === true)
    .map((name) => forbiddenField(child(path, name), "when `hostUsers` is false"));
}
