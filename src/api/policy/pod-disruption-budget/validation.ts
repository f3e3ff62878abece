import { type FieldError, invalidField, notSupported } from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { validateStoredSelector } from "../../apps/workload/validation.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";
import { validateConditions } from "../../meta/validation/condition.ts";
import { validateAtMostHundredPercent, validateIntOrPercent } from "../../meta/validation/int-or-percent.ts";
import { type PodDisruptionBudget, type PodDisruptionBudgetSpec, podDisruptionBudgetSpec } from "./schema.ts";

const EVICTION_POLICIES = ["AlwaysAllow", "IfHealthyBudget"];

export function validatePodDisruptionBudgetSpec(
  spec: PodDisruptionBudgetSpec,
  stored: PodDisruptionBudgetSpec | undefined,
): FieldError[] {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec;
  const both = minAvailable !== undefined && maxUnavailable !== undefined;
  return [
    ...(both
      ? [
          invalidField(
            "spec",
            goStruct(podDisruptionBudgetSpec, spec),
            "minAvailable and maxUnavailable cannot be both set",
          ),
        ]
      : []),
    ...validateIntOrPercent(minAvailable, "spec.minAvailable"),
    ...validateAtMostHundredPercent(minAvailable, "spec.minAvailable"),
    ...validateIntOrPercent(maxUnavailable, "spec.maxUnavailable"),
    ...validateAtMostHundredPercent(maxUnavailable, "spec.maxUnavailable"),
    ...validateStoredSelector(selector, stored?.selector, "spec.selector"),
    ...(policy !== undefined && !EVICTION_POLICIES.includes(policy)
      ? [notSupported("spec.unhealthyPodEvictionPolicy", policy, EVICTION_POLICIES)]
      : []),
  ];
}

export function validatePodDisruptionBudgetStatus({ status }: PodDisruptionBudget): readonly FieldError[] {
  if (status === undefined) return [];
  return [
    ...validateConditions(status.conditions, "status.conditions"),
    ...validateNonNegativeFields(status, "status", [
      "disruptionsAllowed",
      "currentHealthy",
      "desiredHealthy",
      "expectedPods",
    ]),
  ];
}
