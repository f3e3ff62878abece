/** Rules for fields of features that are off by default: device claims, resources of the whole pod, stop signals. */
import {
  duplicateField,
  errorsMax,
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
import { isPodLevelResource, validateResourceName } from "../resources/names.ts";
import { parseResourceList } from "../resources/quantities.ts";
import type { ResourceClaim } from "../resources/schema.ts";
import { validateResourceRequirements } from "../resources/validation.ts";
import { containersWithPaths } from "./containers.ts";
import { containerRequests } from "./resources.ts";
import type { PodResourceClaim, PodSpec } from "./schema.ts";

export function validateStopSignals(spec: PodSpec, path: string): readonly FieldError[] {
  return validateEach(containersWithPaths(spec, path), (each) => {
    const { lifecycle } = each.container;
    if (lifecycle?.stopSignal === undefined) return [];
    return validateStopSignal(lifecycle.stopSignal, child(each.at, "lifecycle.stopSignal"), spec);
  });
}

export function validateClaims(claims: readonly PodResourceClaim[], path: string): readonly FieldError[] {
  const seen = new Set<string>();
  return validateEach(claims, (claim, i) => {
    const at = index(path, i);
    const { name, resourceClaimName, resourceClaimTemplateName: template } = claim;
    const isRepeated = name !== "" && seen.size === seen.add(name).size;
    const nameAt = child(at, "name");
    return [
      ...(name === "" ? [requiredField(nameAt)] : []),
      ...(isRepeated ? [duplicateField(nameAt, name)] : []),
      ...(name === "" || isRepeated ? [] : validateName(nameAt, name, dns1123Label)),
      ...validateClaimSource(claim, at),
      ...validateReference(resourceClaimName, child(at, "resourceClaimName")),
      ...validateReference(template, child(at, "resourceClaimTemplateName")),
    ];
  });
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

/** The claims that a container uses, each once, as a whole or by request. `known` are the claims of the pod. */
export function validateContainerClaims(
  claims: readonly ResourceClaim[],
  path: string,
  known: ReadonlySet<string>,
): readonly FieldError[] {
  if (claims.length === 0) return [];
  const choices = known.size === 0 ? " which is empty" : `: ${[...known].sort().join(", ")}`;
  const detail = `must be one of the names in pod.spec.resourceClaims${choices}`;
  const used = new Set<string>();
  /** Claims of which a request is used. */
  const partly = new Map<string, number>();
  return validateEach(claims, ({ name, request = "" }, i) => {
    const at = index(path, i);
    if (name === "") return [requiredField(at)];
    const errors: FieldError[] = [];
    if (used.has(name)) errors.push(duplicateField(at, name));
    else {
      const key = request === "" ? name : `${name}/${request}`;
      if (request !== "") errors.push(...validateName(child(at, "request"), request, dns1123Label));
      if (used.has(key)) errors.push(duplicateField(at, key));
      else if (request === "") {
        const overlaps = Math.min(partly.get(name) ?? 0, errorsMax);
        errors.push(...Array.from({ length: overlaps }, () => duplicateField(at, name)));
      } else partly.set(name, (partly.get(name) ?? 0) + 1);
      used.add(key);
    }
    return known.has(name) ? errors : [...errors, { ...notFoundField(at, name), detail }];
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

/** Requests and limits of the pod as a whole. */
export function validatePodResources(
  spec: PodSpec,
  path: string,
  claimNames: ReadonlySet<string>,
): readonly FieldError[] {
  if (spec.resources === undefined) return [];
  const { claims = [] } = spec.resources;
  const claimsAt = child(path, "claims");
  return [
    ...(claims.length > 0 ? [forbiddenField(claimsAt, "claims cannot be set for Resources at pod-level")] : []),
    ...validateResourceRequirements(spec.resources, path, validatePodResourceName),
    ...validateContainerClaims(claims, claimsAt, claimNames),
    ...validateConsistency(spec, path),
  ];
}

function validatePodResourceName(name: string, path: string): readonly FieldError[] {
  const errors = validateResourceName(name, path);
  return errors.length > 0 || isPodLevelResource(name) ? errors : [notSupported(path, name, POD_RESOURCES)];
}

const WINDOWS_SIGNALS = ["SIGKILL", "SIGTERM"];

function validateStopSignal(stopSignal: string | undefined, path: string, { os }: PodSpec): readonly FieldError[] {
  if (stopSignal === undefined) return [];
  if (os === undefined) return [forbiddenField(path, "may not be set for containers with empty `spec.os.name`")];
  if (os.name !== "windows" || WINDOWS_SIGNALS.includes(stopSignal)) return [];
  return [notSupported(path, stopSignal, WINDOWS_SIGNALS)];
}
