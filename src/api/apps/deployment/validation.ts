import { type FieldError, forbiddenField, invalidField, notSupported } from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import {
  validateNonNegative,
  validateNonNegativeFields,
  validateNotDecremented,
} from "../../meta/validation/bounds.ts";
import {
  intOrPercentValue,
  validateAtMostHundredPercent,
  validateIntOrPercent,
} from "../../meta/validation/int-or-percent.ts";
import {
  isValidSelector,
  validateAlwaysRestarts,
  validateSelector,
  validateTemplate,
  validateTemplateLabels,
} from "../workload/validation.ts";
import type {
  Deployment,
  DeploymentSpec,
  DeploymentStatus,
  DeploymentStrategy,
  RollingUpdateDeployment,
} from "./schema.ts";

export function validateDeploymentSpec(
  spec: DeploymentSpec,
  previous: DeploymentSpec | undefined,
): readonly FieldError[] {
  return [
    ...validateNonNegative(spec.replicas, "spec.replicas"),
    ...validateSelector(spec.selector, "spec.selector", "deployment"),
    ...(isValidSelector(spec.selector)
      ? [
          ...validateTemplateLabels(spec.selector, spec.template, "spec.template"),
          ...validateTemplate(spec.template, previous?.template, "spec.template"),
          ...validateAlwaysRestarts(spec.template, "spec.template", "ReplicaSet"),
        ]
      : [invalidField("spec.selector", goStruct(labelSelector, spec.selector), "invalid label selector")]),
    ...validateStrategy(spec.strategy ?? {}),
    ...validateNonNegativeFields(spec, "spec", ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"]),
    ...validateDeadline(spec),
  ];
}

function validateDeadline({ progressDeadlineSeconds, minReadySeconds = 0 }: DeploymentSpec): readonly FieldError[] {
  if (progressDeadlineSeconds === undefined || progressDeadlineSeconds > minReadySeconds) return [];
  return [
    invalidField("spec.progressDeadlineSeconds", progressDeadlineSeconds, "must be greater than minReadySeconds"),
  ];
}

function validateStrategy(strategy: DeploymentStrategy): readonly FieldError[] {
  switch (strategy.type) {
    case "Recreate": {
      const detail = "may not be specified when strategy `type` is 'Recreate'";
      return strategy.rollingUpdate === undefined ? [] : [forbiddenField("spec.strategy.rollingUpdate", detail)];
    }
    case "RollingUpdate":
      return validateRollingUpdate(strategy.rollingUpdate ?? {}, "spec.strategy.rollingUpdate");
    default:
      return [notSupported("spec.strategy", strategy, ["Recreate", "RollingUpdate"])];
  }
}

function validateRollingUpdate(
  { maxUnavailable, maxSurge }: RollingUpdateDeployment,
  path: string,
): readonly FieldError[] {
  const stuck = intOrPercentValue(maxUnavailable) === 0 && intOrPercentValue(maxSurge) === 0;
  return [
    ...validateIntOrPercent(maxUnavailable, `${path}.maxUnavailable`),
    ...validateIntOrPercent(maxSurge, `${path}.maxSurge`),
    ...(stuck ? [invalidField(`${path}.maxUnavailable`, maxUnavailable, "may not be 0 when `maxSurge` is 0")] : []),
    ...validateAtMostHundredPercent(maxUnavailable, `${path}.maxUnavailable`),
  ];
}

export function validateDeploymentStatus(next: Deployment, previous: Deployment): readonly FieldError[] {
  const status: DeploymentStatus = next.status ?? {};
  const { replicas = 0, readyReplicas = 0, availableReplicas = 0 } = status;
  const all = ["updatedReplicas", "readyReplicas", "availableReplicas"] as const;
  return [
    ...validateNonNegativeFields(status, "status", [
      "observedGeneration",
      "replicas",
      "updatedReplicas",
      "readyReplicas",
      "availableReplicas",
      "unavailableReplicas",
      "terminatingReplicas",
      "collisionCount",
    ]),
    ...all
      .filter((name) => (status[name] ?? 0) > replicas)
      .map((name) => invalidField(`status.${name}`, status[name], "cannot be greater than status.replicas")),
    ...(availableReplicas > readyReplicas
      ? [invalidField("status.availableReplicas", availableReplicas, "cannot be greater than readyReplicas")]
      : []),
    ...validateNotDecremented(status.collisionCount, previous.status?.collisionCount, "status.collisionCount"),
  ];
}
