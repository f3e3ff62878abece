/** Rules for security contexts: users, profiles, capabilities. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  tooLong,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { child } from "../../../schema/value/field-path.ts";
import { dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import { validateDescendingPath } from "../volume/file-validation.ts";
import {
  type AppArmorProfile,
  type SeccompProfile,
  type SecurityContext,
  seccompProfile,
  securityContext,
  type WindowsSecurityContextOptions,
} from "./security-context.ts";

const ID_MAX = 2147483647;

/** The ID of a user or a group. */
export function validateId(id: number | undefined, path: string): readonly FieldError[] {
  if (id === undefined || (id >= 0 && id <= ID_MAX)) return [];
  return [invalidField(path, id, `must be between 0 and ${ID_MAX}, inclusive`)];
}

const PROC_MOUNTS = ["Default", "Unmasked"];

/** `hostUsers`: whether the pod uses the host's user namespace. */
export function validateSecurityContext(
  context: SecurityContext,
  path: string,
  hostUsers: boolean,
): readonly FieldError[] {
  const { procMount } = context;
  const proc = child(path, "procMount");
  return [
    ...validateId(context.runAsUser, child(path, "runAsUser")),
    ...validateId(context.runAsGroup, child(path, "runAsGroup")),
    ...(procMount === undefined || PROC_MOUNTS.includes(procMount) ? [] : [notSupported(proc, procMount, PROC_MOUNTS)]),
    ...(hostUsers && procMount === "Unmasked"
      ? [invalidField(proc, procMount, "`hostUsers` must be false to use `Unmasked`")]
      : []),
    ...validateSeccompProfile(context.seccompProfile, child(path, "seccompProfile")),
    ...validateEscalation(context, path),
    ...validateWindowsOptions(context.windowsOptions, child(path, "windowsOptions")),
    ...validateAppArmorProfile(context.appArmorProfile, child(path, "appArmorProfile")),
  ];
}

function validateEscalation(context: SecurityContext, path: string): readonly FieldError[] {
  if (context.allowPrivilegeEscalation !== false) return [];
  const prefix = "cannot set `allowPrivilegeEscalation` to false and";
  const added = (context.capabilities?.add ?? []).filter((capability) => capability === "CAP_SYS_ADMIN");
  return [
    ...(context.privileged === true
      ? [invalidField(path, goStruct(securityContext, context), `${prefix} \`privileged\` to true`)]
      : []),
    ...added.map(() =>
      invalidField(path, goStruct(securityContext, context), `${prefix} \`capabilities.Add\` CAP_SYS_ADMIN`),
    ),
  ];
}

const PROFILES = ["Localhost", "RuntimeDefault", "Unconfined"];

export function validateSeccompProfile(profile: SeccompProfile | undefined, path: string): readonly FieldError[] {
  if (profile === undefined) return [];
  const { localhostProfile } = profile;
  const [at, type] = [child(path, "localhostProfile"), profile.type as string];
  const errors: FieldError[] = [];
  if (type === "") errors.push(requiredField(child(path, "type"), "type is required when seccompProfile is set"));
  else if (!PROFILES.includes(type)) errors.push(notSupported(child(path, "type"), type, PROFILES));
  if (type === "Localhost") {
    if (localhostProfile === undefined) errors.push(requiredField(at, "must be set when seccomp type is Localhost"));
    else errors.push(...validateDescendingPath(localhostProfile, at));
  } else if (localhostProfile !== undefined) {
    errors.push(invalidField(at, goStruct(seccompProfile, profile), "can only be set when seccomp type is Localhost"));
  }
  return errors;
}

/** PATH_MAX of Linux without the terminator. */
const PROFILE_PATH_MAX = 4095;

export function validateAppArmorProfile(profile: AppArmorProfile | undefined, path: string): readonly FieldError[] {
  if (profile === undefined) return [];
  const { localhostProfile } = profile;
  const [at, type] = [child(path, "localhostProfile"), profile.type as string];
  if (type === "") return [requiredField(child(path, "type"), "type is required when appArmorProfile is set")];
  if (!PROFILES.includes(type)) return [notSupported(child(path, "type"), type, PROFILES)];
  if (type !== "Localhost") {
    if (localhostProfile === undefined) return [];
    return [invalidField(at, localhostProfile, "can only be set when AppArmor type is Localhost")];
  }
  if (localhostProfile === undefined || localhostProfile === "") {
    return [requiredField(at, "must be set when AppArmor type is Localhost")];
  }
  const padded = localhostProfile !== localhostProfile.trim();
  return [
    ...(padded ? [invalidField(at, localhostProfile, "must not be padded with whitespace")] : []),
    ...(Buffer.byteLength(localhostProfile) > PROFILE_PATH_MAX ? [tooLong(at, PROFILE_PATH_MAX)] : []),
  ];
}

const CREDENTIALS_MAX = 64 * 1024;
const DOMAIN_MAX = 256;
const USER_MAX = 104;
const NETBIOS = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const DNS_DOMAIN =
  /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

export function validateWindowsOptions(
  options: WindowsSecurityContextOptions | undefined,
  path: string,
): readonly FieldError[] {
  const { gmsaCredentialSpecName: name, gmsaCredentialSpec: spec, runAsUserName: user } = options ?? {};
  const at = child(path, "gmsaCredentialSpec");
  return [
    ...(name === undefined ? [] : validateName(child(path, "gmsaCredentialSpecName"), name, dns1123Subdomain)),
    ...(spec === "" ? [invalidField(at, spec, "gmsaCredentialSpec cannot be an empty string")] : []),
    ...(spec !== undefined && Buffer.byteLength(spec) > CREDENTIALS_MAX
      ? [invalidField(at, spec, "gmsaCredentialSpec size must be under 64 KiB")]
      : []),
    ...(user === undefined
      ? []
      : windowsUserProblems(user).map((problem) =>
          invalidField(child(path, "runAsUserName"), user, `runAsUserName${problem}`),
        )),
  ];
}

function windowsUserProblems(name: string): readonly string[] {
  if (name === "") return [" cannot be an empty string"];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the check is for control characters
  if (/[\x00-\x1f\x7f]/.test(name)) return [" cannot contain control characters"];
  const parts = name.split("\\");
  if (parts.length > 2) return [" cannot contain more than one backslash"];
  const [domain, user = ""] = parts.length === 2 ? parts : [undefined, parts[0]];
  const problems: string[] = [];
  if (domain !== undefined && Buffer.byteLength(domain) >= DOMAIN_MAX) {
    problems.push(`'s Domain length must be under ${DOMAIN_MAX} characters`);
  }
  if (domain !== undefined && !NETBIOS.test(domain) && !DNS_DOMAIN.test(domain)) {
    problems.push("'s Domain doesn't match the NetBios nor the DNS format");
  }
  if (user === "") problems.push("'s User cannot be empty");
  else if (Buffer.byteLength(user) > USER_MAX) {
    problems.push(`'s User length must not be longer than ${USER_MAX} characters`);
  }
  if (/^[. ]+$/.test(user)) problems.push("'s User cannot contain only periods or spaces");
  if (/["/\\:;|=,+*?<>@[\]]/.test(user)) {
    problems.push("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
  }
  return problems;
}

/** The deprecated annotation's text for a profile: `runtime/default`, `unconfined`, `localhost/NAME`. */
export function profileAnnotation({ type, localhostProfile = "" }: SeccompProfile | AppArmorProfile): string {
  if (type === "RuntimeDefault") return "runtime/default";
  if (type === "Unconfined") return "unconfined";
  return type === "Localhost" && localhostProfile.trim() !== "" ? `localhost/${localhostProfile}` : "";
}

/** The deprecated annotation must agree with the field. `what` names the profile in the error. */
export function validateAnnotationMatchesField(
  annotation: string | undefined,
  profile: SeccompProfile | AppArmorProfile | undefined,
  path: string,
  what: "seccomp" | "apparmor",
): readonly FieldError[] {
  if (annotation === undefined || profile === undefined) return [];
  const normal = annotation === "docker/default" && what === "seccomp" ? "runtime/default" : annotation;
  const expected = profileAnnotation(profile);
  if (normal === expected) return [];
  if (profile.type === "Localhost" && normal.startsWith("localhost/")) {
    return [forbiddenField(child(path, "localhostProfile"), `${what} profile in annotation and field must match`)];
  }
  return [forbiddenField(child(path, "type"), `${what} type in annotation and field must match`)];
}
