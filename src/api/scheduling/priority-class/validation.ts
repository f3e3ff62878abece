import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import type { PriorityClass } from "./schema.ts";
import { SYSTEM_PREFIX, systemClassProblem } from "./system-classes.ts";

const USER_MAX = 1_000_000_000;

const POLICIES = ["PreemptLowerPriority", "Never"];

/** Validates new classes only: most fields are immutable. */
export function validatePriorityClass(object: PriorityClass, previous?: PriorityClass): readonly FieldError[] {
  if (previous !== undefined) return [];
  return [...validateValue(object), ...validatePolicy(object.preemptionPolicy)];
}

function validateValue(object: PriorityClass): readonly FieldError[] {
  const name = object.metadata?.name ?? "";
  if (name.startsWith(SYSTEM_PREFIX)) {
    const problem = systemClassProblem(object);
    if (problem === undefined) return [];
    const why = `priority class names with '${SYSTEM_PREFIX}' prefix are reserved for system use only. error: ${problem}`;
    return [forbiddenField("metadata.name", why)];
  }
  if (object.value <= USER_MAX) return [];
  return [forbiddenField("value", `maximum allowed value of a user defined priority is ${USER_MAX}`)];
}

function validatePolicy(policy: string | undefined): readonly FieldError[] {
  if (policy === "") return [requiredField("preemptionPolicy")];
  if (policy === undefined || POLICIES.includes(policy)) return [];
  return [notSupported("preemptionPolicy", policy, POLICIES)];
}

export function validatePriorityClassUpdate(next: PriorityClass, previous: PriorityClass): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (next.value !== previous.value) errors.push(forbiddenField("value", "may not be changed in an update."));
  if (next.preemptionPolicy !== previous.preemptionPolicy) {
    errors.push(invalidField("preemptionPolicy", next.preemptionPolicy, "field is immutable"));
  }
  return errors;
}
