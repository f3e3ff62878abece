/** Rules for the downward API: references to fields of the pod and to resources of its containers. */
import { type FieldError, invalidField, notSupported, requiredField } from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { parseQuantity } from "../../meta/quantity.ts";
import { qualifiedName, validateName } from "../../meta/validation/names.ts";
import type { ObjectFieldSelector, ResourceFieldSelector } from "./field-selectors.ts";

/** The fields that environment variables may refer to. */
export const ENV_FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];

/** The fields that files may refer to. */
export const FILE_FIELDS = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
];

const KNOWN_FIELDS = new Set([
  ...ENV_FIELDS,
  ...FILE_FIELDS,
  "spec.restartPolicy",
  "spec.schedulerName",
  "status.phase",
  "spec.host",
]);

export function validateFieldRef(
  { apiVersion = "", fieldPath }: ObjectFieldSelector,
  path: string,
  fields: readonly string[],
): readonly FieldError[] {
  if (apiVersion === "") return [requiredField(child(path, "apiVersion"))];
  const at = child(path, "fieldPath");
  if (fieldPath === "") return [requiredField(at)];
  const [, map = "", name = ""] = /^([^[]+(?:\[(?!')[^[]*)*)\['(.*)'\]$/s.exec(fieldPath) ?? [];
  const fail = (why: string): readonly FieldError[] => [
    invalidField(at, fieldPath, `error converting fieldPath: ${why}`),
  ];
  if (apiVersion !== "v1") return fail(`unsupported pod version: ${apiVersion}`);
  if (map !== "") {
    if (map === "metadata.annotations") return validateName(path, name.toLowerCase(), qualifiedName);
    if (map === "metadata.labels") return validateName(path, name, qualifiedName);
    return fail(`field label does not support subscript: ${fieldPath}`);
  }
  if (!KNOWN_FIELDS.has(fieldPath)) return fail(`field label not supported: ${fieldPath}`);
  const field = fieldPath === "spec.host" ? "spec.nodeName" : fieldPath;
  return fields.includes(field) ? [] : [notSupported(at, field, fields)];
}

const RESOURCES = [
  "limits.cpu",
  "limits.ephemeral-storage",
  "limits.memory",
  "requests.cpu",
  "requests.ephemeral-storage",
  "requests.memory",
];
const HUGE_PAGES = /^(?:limits|requests)\.hugepages-/;
const CPU_DIVISORS = ["1m", "1"];
const BYTE_DIVISORS = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/** A file must name the container; an environment variable may omit it. */
export function validateResourceFieldRef(
  { containerName = "", resource, divisor }: ResourceFieldSelector,
  path: string,
  inFile: boolean,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (inFile && containerName === "") errors.push(requiredField(child(path, "containerName")));
  else if (resource === "") errors.push(requiredField(child(path, "resource")));
  else if (!RESOURCES.includes(resource) && !HUGE_PAGES.test(resource)) {
    errors.push(notSupported(child(path, "resource"), resource, RESOURCES));
  }
  return [...errors, ...validateDivisor(resource, divisor, child(path, "divisor"))];
}

function validateDivisor(resource: string, divisor: string | undefined, path: string): readonly FieldError[] {
  if (divisor === undefined || parseQuantity(divisor)?.nanos === 0n) return [];
  const cpu = resource.endsWith(".cpu");
  const [, measure = ""] = /^(?:limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-)/.exec(resource) ?? [];
  if (measure === "" || (cpu ? CPU_DIVISORS : BYTE_DIVISORS).includes(divisor)) return [];
  const words: Readonly<Record<string, string>> = {
    "ephemeral-storage": "local ephemeral storage",
    "hugepages-": "hugepages",
  };
  const values = cpu ? "1m and 1" : BYTE_DIVISORS.join(", ");
  return [
    invalidField(
      path,
      resource,
      `only divisor's values ${values} are supported with the ${words[measure] ?? measure} resource`,
    ),
  ];
}
