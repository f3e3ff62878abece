import { type FieldError, invalidField, notSupported, requiredField } from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { validateNonNegativeFields, validateNotDecremented } from "../../meta/validation/bounds.ts";
import {
  intOrPercentValue,
  validateAtMostHundredPercent,
  validateIntOrPercent,
} from "../../meta/validation/int-or-percent.ts";
import {
  isEmptySelector,
  isValidSelector,
  validateAlwaysRestarts,
  validateStoredSelector,
  validateTemplate,
  validateTemplateLabels,
} from "../workload/validation.ts";
import type { DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet } from "./schema.ts";

export function validateDaemonSetSpec(spec: DaemonSetSpec, previous: DaemonSetSpec | undefined): readonly FieldError[] {
  const { selector, template } = spec;
  return [
    ...validateStoredSelector(selector, previous?.selector, "spec.selector"),
    ...(isValidSelector(selector) ? validateTemplateLabels(selector, template, "spec.template") : []),
    ...(selector !== undefined && isEmptySelector(selector)
      ? [invalidField("spec.selector", goStruct(labelSelector, selector), "empty selector is invalid for daemonset")]
      : []),
    ...validateTemplate(template, previous?.template, "spec.template"),
    ...validateAlwaysRestarts(template, "spec.template", "DaemonSet"),
    ...validateNonNegativeFields(spec, "spec", ["minReadySeconds"]),
    ...validateUpdateStrategy(spec.updateStrategy ?? {}),
    ...validateNonNegativeFields(spec, "spec", ["revisionHistoryLimit"]),
  ];
}

function validateUpdateStrategy(strategy: DaemonSetUpdateStrategy): readonly FieldError[] {
  switch (strategy.type) {
    case "OnDelete":
      return [];
    case "RollingUpdate":
      return strategy.rollingUpdate === undefined
        ? [requiredField("spec.updateStrategy.rollingUpdate")]
        : validateRollingUpdate(strategy.rollingUpdate, "spec.updateStrategy.rollingUpdate");
    default:
      return [notSupported("spec.updateStrategy", strategy, ["RollingUpdate", "OnDelete"])];
  }
}

/** Either maxUnavailable or maxSurge must be zero, but not both. */
function validateRollingUpdate({ maxUnavailable, maxSurge }: RollingUpdateDaemonSet, path: string): FieldError[] {
  const [unavailableAt, surgeAt] = [`${path}.maxUnavailable`, `${path}.maxSurge`];
  const errors = [
    ...validateIntOrPercent(maxUnavailable, unavailableAt),
    ...validateIntOrPercent(maxSurge, surgeAt),
    ...validateAtMostHundredPercent(maxUnavailable, unavailableAt),
    ...validateAtMostHundredPercent(maxSurge, surgeAt),
  ];
  const [unavailable, surge] = [intOrPercentValue(maxUnavailable) !== 0, intOrPercentValue(maxSurge) !== 0];
  if (unavailable && surge) {
    errors.push(invalidField(surgeAt, maxSurge, "may not be set when maxUnavailable is non-zero"));
  }
  if (!unavailable && !surge) errors.push(requiredField(unavailableAt, "cannot be 0 when maxSurge is 0"));
  return errors;
}

export function validateDaemonSetStatus(next: DaemonSet, previous: DaemonSet): readonly FieldError[] {
  if (next.status === undefined) return [];
  return [
    ...validateNonNegativeFields(next.status, "status", [
      "currentNumberScheduled",
      "numberMisscheduled",
      "desiredNumberScheduled",
      "numberReady",
      "observedGeneration",
      "updatedNumberScheduled",
      "numberAvailable",
      "numberUnavailable",
      "collisionCount",
    ]),
    ...validateNotDecremented(next.status.collisionCount, previous.status?.collisionCount, "status.collisionCount"),
  ];
}
