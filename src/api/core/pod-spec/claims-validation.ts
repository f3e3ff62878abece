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
import { compareQuantities, formatQuantity } from "../../meta/quantity.ts";
import { dns1123Label, dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import { isPodLevelResource } from "../resources/names.ts";
import { parseResourceList } from "../resources/quantities.ts";
import { validateContainerResources } from "../resources/validation.ts";
import { containersWithPaths } from "./containers.ts";
import { containerRequests } from "./resources.ts";
import type { PodResourceClaim, PodSpec } from "./schema.ts";

/** `pod` is the pod's name; empty in templates. */
export function validateOptionalFeatures(spec: PodSpec, path: string, pod: string): readonly FieldError[] {
  const claims = spec.resourceClaims ?? [];
  const names = new Set(claims.map(({ name }) => name));
  const choices = names.size === 0 ? " which is empty" : `: ${[...names].sort().join(", ")}`;
  return [
    ...validateClaims(claims, child(path, "resourceClaims"), pod),
    ...(spec.resources === undefined ? [] : validatePodResources(spec, child(path, "resources"))),
    ...validateEach(containersWithPaths(spec, path), (each) => {
      const { resources, lifecycle } = each.container;
      if (resources?.claims === undefined && lifecycle?.stopSignal === undefined) return [];
      return [
        ...validateClaimNames(resources?.claims ?? [], child(each.at, "resources.claims"), names, choices),
        ...validateStopSignal(lifecycle?.stopSignal, child(each.at, "lifecycle.stopSignal"), spec),
      ];
    }),
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
  choices: string,
): readonly FieldError[] {
  const seen = new Set<string>();
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

/** Requests of the pod cover those of its containers together, and no container has a higher limit than the pod. */
function validateConsistency(spec: PodSpec, path: string): readonly FieldError[] {
  const requests = parseResourceList(spec.resources?.requests);
  const limits = parseResourceList(spec.resources?.limits);
  const ofContainers = [...containerRequests({ spec })].flatMap(([name, sum]) => {
    const request = requests.get(name);
    if (request === undefined || compareQuantities(sum, request) <= 0) return [];
    const detail = `must be greater than or equal to aggregate container requests of ${formatQuantity(sum)}`;
    return [invalidField(key(child(path, "requests"), name), formatQuantity(request), detail)];
  });
  const ofEach = spec.containers.flatMap(({ resources }, i) =>
    [...parseResourceList(resources?.limits)].flatMap(([name, limit]) => {
      const most = limits.get(name);
      if (most === undefined || compareQuantities(limit, most) <= 0) return [];
      // Kubernetes' path, which begins at the pod's resources.
      const at = child(key(index(child(path, "containers"), i), name), "limits");
      const detail = `must be less than or equal to pod limits of ${formatQuantity(most)}`;
      return [invalidField(at, formatQuantity(limit), detail)];
    }),
  );
  return [...ofContainers, ...ofEach];
}

function validatePodResources(spec: PodSpec, path: string): readonly FieldError[] {
  const { limits = {}, requests = {}, claims = [] } = spec.resources ?? {};
  const unsupported = (list: object, at: string): readonly FieldError[] =>
    Object.keys(list)
      .filter((name) => !isPodLevelResource(name))
      .map((name) => notSupported(key(at, name), name, POD_RESOURCES));
  return [
    ...(claims.length > 0
      ? [forbiddenField(child(path, "claims"), "claims may not be set for Resources at pod-level")]
      : []),
    ...unsupported(limits, child(path, "limits")),
    ...unsupported(requests, child(path, "requests")),
    ...validateContainerResources({ limits, requests }, path),
    ...validateConsistency(spec, path),
  ];
}

const WINDOWS_SIGNALS = ["SIGKILL", "SIGTERM"];

function validateStopSignal(stopSignal: string | undefined, path: string, { os }: PodSpec): readonly FieldError[] {
  if (stopSignal === undefined) return [];
  if (os === undefined) return [forbiddenField(path, "may not be set for containers with empty `spec.os.name`")];
  if (os.name !== "windows" || WINDOWS_SIGNALS.includes(stopSignal)) return [];
  return [notSupported(path, stopSignal, WINDOWS_SIGNALS)];
}
