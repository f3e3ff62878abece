/** Rules for fields of features that are off by default: device claims, resources of the whole pod, stop signals. */
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notFoundField,
  notSupported,
  requiredField,
  unquoted,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index, key } from "../../../schema/value/field-path.ts";
import { dns1123Label, dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import { validateContainerResources } from "../resources/validation.ts";
import { containersWithPaths } from "./containers.ts";
import type { PodResourceClaim, PodSpec } from "./schema.ts";

/** `pod` is the pod's name; empty in templates. */
export function validateOptionalFeatures(spec: PodSpec, path: string, pod: string): readonly FieldError[] {
  const claims = spec.resourceClaims ?? [];
  const names = new Set(claims.map(({ name }) => name));
  return [
    ...validateClaims(claims, child(path, "resourceClaims"), pod),
    ...(spec.resources === undefined ? [] : validatePodResources(spec, child(path, "resources"))),
    ...validateEach(containersWithPaths(spec, path), ({ container, at }) => [
      ...validateClaimNames(container.resources?.claims ?? [], child(at, "resources.claims"), names),
      ...validateStopSignal(container.lifecycle?.stopSignal, child(at, "lifecycle.stopSignal"), spec),
    ]),
  ];
}

function validateClaims(claims: readonly PodResourceClaim[], path: string, pod: string): readonly FieldError[] {
  const seen = new Set<string>();
  return validateEach(claims, (claim, i) => {
    const at = index(path, i);
    const { name, resourceClaimName, resourceClaimTemplateName: template } = claim;
    const isRepeated = seen.size === seen.add(name).size;
    const nameAt = child(at, "name");
    return [
      ...(name === "" ? [requiredField(nameAt)] : []),
      ...(isRepeated ? [duplicateField(nameAt, name)] : []),
      ...(name === "" || isRepeated ? [] : validateClaimName(name, nameAt, template === undefined ? "" : pod)),
      ...validateClaimSource(claim, at),
      ...validateReference(resourceClaimName, child(at, "resourceClaimName")),
      ...validateReference(template, child(at, "resourceClaimTemplateName")),
    ];
  });
}

function validateClaimName(name: string, path: string, pod: string): readonly FieldError[] {
  const errors = validateName(path, name, dns1123Label);
  if (errors.length > 0 || pod === "") return errors;
  const final = `${pod}-${name}`;
  return dns1123Subdomain(final).map((problem) => invalidField(path, final, `final ResourceClaim name: ${problem}`));
}

function validateClaimSource(claim: PodResourceClaim, path: string): readonly FieldError[] {
  const { resourceClaimName, resourceClaimTemplateName } = claim;
  if ((resourceClaimName === undefined) !== (resourceClaimTemplateName === undefined)) return [];
  const detail =
    resourceClaimName === undefined
      ? "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
      : "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
  return [invalidField(path, unquoted(JSON.stringify(claim)), detail)];
}

function validateReference(name: string | undefined, path: string): readonly FieldError[] {
  return name === undefined ? [] : validateName(path, name, dns1123Subdomain);
}

function validateClaimNames(
  claims: readonly { readonly name: string }[],
  path: string,
  known: ReadonlySet<string>,
): readonly FieldError[] {
  const seen = new Set<string>();
  const names = [...known].sort();
  const choices = names.length === 0 ? " which is empty" : `: ${names.join(", ")}`;
  return validateEach(claims, ({ name }, i) => {
    const at = index(path, i);
    if (name === "") return [requiredField(at)];
    const isRepeated = seen.size === seen.add(name).size;
    const detail = `must be one of the names in pod.spec.resourceClaims${choices}`;
    return [
      ...(isRepeated ? [duplicateField(at, name)] : []),
      ...(known.has(name) ? [] : [{ ...notFoundField(at, name), detail }]),
    ];
  });
}

const POD_RESOURCES = ["cpu", "memory"];

function validatePodResources(spec: PodSpec, path: string): readonly FieldError[] {
  const { limits = {}, requests = {}, claims = [] } = spec.resources ?? {};
  const unsupported = (list: object, at: string): readonly FieldError[] =>
    Object.keys(list)
      .filter((name) => !POD_RESOURCES.includes(name) && !name.startsWith("hugepages-"))
      .map((name) => notSupported(key(at, name), name, POD_RESOURCES));
  return [
    ...(claims.length > 0
      ? [forbiddenField(child(path, "claims"), "claims may not be set for Resources at pod-level")]
      : []),
    ...unsupported(limits, child(path, "limits")),
    ...unsupported(requests, child(path, "requests")),
    ...validateContainerResources({ limits, requests }, path),
  ];
}

const WINDOWS_SIGNALS = ["SIGKILL", "SIGTERM"];

function validateStopSignal(stopSignal: string | undefined, path: string, { os }: PodSpec): readonly FieldError[] {
  if (stopSignal === undefined) return [];
  if (os === undefined) return [forbiddenField(path, "may not be set for containers with empty `spec.os.name`")];
  if (os.name !== "windows" || WINDOWS_SIGNALS.includes(stopSignal)) return [];
  return [notSupported(path, stopSignal, WINDOWS_SIGNALS)];
}
