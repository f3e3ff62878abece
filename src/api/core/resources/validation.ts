/** Rules for resource requirements and resize policies of containers. */
import {
  duplicateField,
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  unquoted,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index, key } from "../../../schema/value/field-path.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { compareQuantityTexts, isFractional, quantityNanos, wholeUnits } from "../../meta/quantity.ts";
import type { ContainerResizePolicy } from "../container/schema.ts";
import {
  isHugePages,
  isIntegerResource,
  isMultipleOfPageSize,
  isOvercommitAllowed,
  validateContainerResourceName,
} from "./names.ts";
import type { ResourceRequirements } from "./schema.ts";

/** A non-negative quantity; an integer for resources that are not divisible. */
export function validateResourceQuantity(name: string, amount: string, path: string): readonly FieldError[] {
  return [
    ...(compareQuantityTexts(amount, "0") < 0
      ? [invalidField(path, amount, "must be greater than or equal to 0")]
      : []),
    ...(isIntegerResource(name) && isFractional(amount) ? [invalidField(path, amount, "must be an integer")] : []),
  ];
}

/** A quantity that is not negative, nor so when 64 bits hold it. */
export function validateBasicQuantity(amount: string, path: string): readonly FieldError[] {
  const units = wholeUnits(quantityNanos(amount));
  return units < 0n ? [invalidField(path, unquoted(`${units}`), "must be a valid resource quantity")] : [];
}

export function validateContainerResources(resources: ResourceRequirements, path: string): readonly FieldError[] {
  return validateResourceRequirements(resources, path, validateContainerResourceName);
}

/** `validateResourceName` has the rules for names. */
export function validateResourceRequirements(
  { limits = {}, requests = {} }: ResourceRequirements,
  path: string,
  validateResourceName: (name: string, path: string) => readonly FieldError[],
): readonly FieldError[] {
  const [limitsAt, requestsAt] = [child(path, "limits"), child(path, "requests")];
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  const hugePagesOnly = names.some(isHugePages) && !names.some((name) => name === "cpu" || name === "memory");
  return [
    ...validateEach(Object.entries(limits), ([name, amount]) => {
      const at = key(limitsAt, name);
      return [
        ...validateResourceName(name, at),
        ...validateResourceQuantity(name, amount, at),
        ...validatePages(name, amount, at),
      ];
    }),
    ...validateEach(Object.entries(requests), ([name, amount]) => {
      const at = key(requestsAt, name);
      return [
        ...validateResourceName(name, at),
        ...validateResourceQuantity(name, amount, at),
        ...validateRequest(name, amount, getMember(limits, name), path),
        ...validatePages(name, amount, at),
      ];
    }),
    ...(hugePagesOnly ? [forbiddenField(path, "HugePages require cpu or memory")] : []),
  ];
}

function validatePages(name: string, amount: string, path: string): readonly FieldError[] {
  if (!isHugePages(name) || isMultipleOfPageSize(name, amount)) return [];
  return [invalidField(path, amount, `${amount} is not positive integer multiple of ${name}`)];
}

function validateRequest(name: string, amount: string, limit: string | undefined, path: string): readonly FieldError[] {
  const at = child(path, "requests");
  if (limit === undefined) {
    if (isOvercommitAllowed(name)) return [];
    return [requiredField(child(path, "limits"), "Limit must be set for non overcommitable resources")];
  }
  const order = compareQuantityTexts(amount, limit);
  if (order !== 0 && !isOvercommitAllowed(name)) {
    return [invalidField(at, amount, `must be equal to ${name} limit of ${limit}`)];
  }
  return order > 0 ? [invalidField(at, amount, `must be less than or equal to ${name} limit of ${limit}`)] : [];
}

const RESIZABLE = ["cpu", "memory"];
const RESTARTS = ["NotRequired", "RestartContainer"];

/** Most errors have the path of the list, as in Kubernetes. */
export function validateResizePolicy(
  policies: readonly ContainerResizePolicy[],
  path: string,
  podRestartPolicy: string,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  const oneOf = (value: string, supported: readonly string[], shown: unknown): readonly FieldError[] => {
    if (supported.includes(value)) return [];
    return [value === "" ? requiredField(path) : notSupported(path, shown, supported)];
  };
  for (const [i, { resourceName, restartPolicy }] of policies.entries()) {
    if (errors.length >= errorsMax) break;
    if (seen.has(resourceName)) errors.push(duplicateField(index(path, i), resourceName));
    seen.add(resourceName);
    errors.push(
      ...oneOf(resourceName, RESIZABLE, unquoted(resourceName)),
      ...oneOf(restartPolicy, RESTARTS, restartPolicy),
    );
    if (podRestartPolicy === "Never" && restartPolicy !== "NotRequired") {
      errors.push(invalidField(path, restartPolicy, "must be 'NotRequired' when `restartPolicy` is 'Never'"));
    }
  }
  return errors;
}
