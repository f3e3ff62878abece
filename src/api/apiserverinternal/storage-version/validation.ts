/** Rules for the versions in which servers store a resource. Paths are those of Kubernetes. */
import {
  duplicateField,
  type FieldError,
  invalidField,
  requiredField,
  unquoted,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { dns1035Label, dns1123Subdomain, qualifiedName, validateName } from "../../meta/validation/names.ts";
import type { ServerStorageVersion, StorageVersion, StorageVersionCondition, StorageVersionStatus } from "./schema.ts";

const VERSION_MESSAGE =
  "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')";

/** `{group}.{resource}` */
export function storageVersionName(name: string): readonly string[] {
  const dot = name.lastIndexOf(".");
  if (dot < 0) return ["name must be in the form of <group>.<resource>"];
  return [
    ...dns1123Subdomain(name.slice(0, dot)).map((problem) => `the group segment ${problem}`),
    ...dns1035Label(name.slice(dot + 1)).map((problem) => `the resource segment ${problem}`),
  ];
}

export function validateStorageVersionStatus({ status = {} }: StorageVersion): readonly FieldError[] {
  const ids = new Set<string>();
  const servers = validateEach(status.storageVersions ?? [], (server, i) => {
    const at = index("status.storageVersions", i);
    const { apiServerID = "" } = server;
    const repeated = ids.has(apiServerID) ? [duplicateField(child(at, "apiServerID"), apiServerID)] : [];
    ids.add(apiServerID);
    return [...repeated, ...validateServer(server, at)];
  });
  return [...servers, ...validateCommonVersion(status), ...validateConditions(status.conditions ?? [], "status")];
}

function validateServer(server: ServerStorageVersion, path: string): readonly FieldError[] {
  const { apiServerID = "", encodingVersion = "", decodableVersions = [], servedVersions = [] } = server;
  const [decodable, served] = [child(path, "decodableVersions"), child(path, "servedVersions")];
  const joined = `[${decodableVersions.join(" ")}]`;
  const canDecode = new Set(decodableVersions);
  const mustDecode = `decodableVersions must include encodingVersion ${encodingVersion}`;
  return [
    ...validateName(child(path, "apiServerID"), apiServerID, dns1123Subdomain),
    ...validateApiVersion(encodingVersion, child(path, "encodingVersion")),
    ...validateEach(decodableVersions, (version, i) => validateApiVersion(version, index(decodable, i))),
    ...(decodableVersions.includes(encodingVersion)
      ? []
      : [
          invalidField(
            decodable,
            decodableVersions.length === 0 ? unquoted("[]string(nil)") : decodableVersions,
            mustDecode,
          ),
        ]),
    ...validateEach(servedVersions, (version, i) => {
      const detail = `individual served version : ${version} must be included in decodableVersions : ${joined}`;
      return [
        ...validateApiVersion(version, index(served, i)),
        ...(canDecode.has(version) ? [] : [invalidField(index(served, i), version, detail)]),
      ];
    }),
  ];
}

function validateApiVersion(text: string, path: string): readonly FieldError[] {
  const problems = apiVersionProblems(text);
  return problems.length === 0 ? [] : [invalidField(path, text, problems.join(","))];
}

function apiVersionProblems(text: string): readonly string[] {
  const parts = text.split("/");
  if (parts.length > 2) return [VERSION_MESSAGE];
  const partProblems = (name: string, part: string, problems: readonly string[]): readonly string[] =>
    (part === "" ? ["must be non-empty"] : problems).map((problem) => `${name} part: ${problem}`);
  const version = parts.at(-1) ?? "";
  const group = parts.length === 2 ? (parts[0] ?? "") : undefined;
  return [
    ...(group === undefined ? [] : partProblems("group", group, dns1123Subdomain(group))),
    ...partProblems("version", version, dns1035Label(version)),
  ];
}

/** The common version is that of all servers, and unset where they differ. */
function validateCommonVersion(status: StorageVersionStatus): readonly FieldError[] {
  const path = "status.commonEncodingVersion";
  const versions = new Set((status.storageVersions ?? []).map(({ encodingVersion = "" }) => encodingVersion));
  const [actual] = versions.size === 1 ? versions : [];
  const stated = status.commonEncodingVersion;
  if (stated === actual) return [];
  if (actual === undefined) {
    const detail =
      "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet";
    return [invalidField(path, stated, detail)];
  }
  return stated === undefined
    ? [invalidField(path, unquoted("null"), `the common encoding version is ${actual}`)]
    : [invalidField(path, stated, `the actual common encoding version is ${actual}`)];
}

function validateConditions(conditions: readonly StorageVersionCondition[], path: string): readonly FieldError[] {
  const seen = new Map<string, number>();
  return validateEach(conditions, ({ type, status, reason, message = "" }, i) => {
    const at = index(path, i);
    const first = seen.get(type);
    seen.set(type, i);
    const detail = `the type of the condition is not unique, it also appears in conditions[${first}]`;
    return [
      ...(first === undefined ? [] : [invalidField(child(at, "type"), type, detail)]),
      ...validateName(child(at, "type"), type, qualifiedName),
      ...validateName(child(at, "status"), status, qualifiedName),
      ...(reason === "" ? [requiredField(child(at, "reason"), "reason cannot be empty")] : []),
      ...(message === "" ? [requiredField(child(at, "message"), "message cannot be empty")] : []),
    ];
  });
}
