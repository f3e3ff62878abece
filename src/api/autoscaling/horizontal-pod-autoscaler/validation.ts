/** Rules for autoscalers. */
import { defaultFeatures } from "../../../flags/gate-tables/default-features.ts";
import type { FeatureLookup } from "../../../flags/gates.ts";
import {
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { parseQuantity } from "../../meta/quantity.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";
import { validateMetrics, validateReference } from "./metrics-validation.ts";
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerSpec,
  HPAScalingPolicy,
  HPAScalingRules,
} from "./schema.ts";

const PERIOD_SECONDS_MAX = 1800;
const STABILIZATION_SECONDS_MAX = 3600;
const POLICY_TYPES = ["Percent", "Pods"];
const SELECT_POLICIES = ["Disabled", "Max", "Min"];

export function validateAutoscaler(
  { spec }: HorizontalPodAutoscaler,
  previous: HorizontalPodAutoscaler | undefined,
  features: FeatureLookup = defaultFeatures,
): readonly FieldError[] {
  if (spec === undefined) return [];
  const mayBeZero = previous?.spec?.minReplicas === 0 || features.has("HPAScaleToZero");
  return [
    ...validateReplicas(spec, mayBeZero ? 0 : 1),
    ...validateReference(spec.scaleTargetRef, "spec.scaleTargetRef"),
    ...validateMetrics(spec.metrics ?? [], "spec.metrics", spec.minReplicas),
    ...validateRules(spec.behavior?.scaleUp, "spec.behavior.scaleUp"),
    ...validateRules(spec.behavior?.scaleDown, "spec.behavior.scaleDown"),
  ];
}

/** `minReplicas: 0` needs a feature gate; stored autoscalers may keep it. */
function validateReplicas(
  { minReplicas, maxReplicas }: HorizontalPodAutoscalerSpec,
  least: number,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (minReplicas !== undefined && minReplicas < least) {
    errors.push(invalidField("spec.minReplicas", minReplicas, `must be greater than or equal to ${least}`));
  }
  if (maxReplicas < 1) errors.push(invalidField("spec.maxReplicas", maxReplicas, "must be greater than 0"));
  if (minReplicas !== undefined && maxReplicas < minReplicas) {
    errors.push(invalidField("spec.maxReplicas", maxReplicas, "must be greater than or equal to `minReplicas`"));
  }
  return errors;
}

function validateRules(rules: HPAScalingRules | undefined, path: string): readonly FieldError[] {
  if (rules === undefined) return [];
  const { stabilizationWindowSeconds: seconds = 0, selectPolicy, policies = [], tolerance } = rules;
  const at = (name: string): string => child(path, name);
  const errors: FieldError[] = [];
  if (seconds < 0) {
    errors.push(invalidField(at("stabilizationWindowSeconds"), seconds, "must be greater than or equal to zero"));
  }
  if (seconds > STABILIZATION_SECONDS_MAX) {
    const detail = `must be less than or equal to ${STABILIZATION_SECONDS_MAX}`;
    errors.push(invalidField(at("stabilizationWindowSeconds"), seconds, detail));
  }
  if (selectPolicy !== undefined && !SELECT_POLICIES.includes(selectPolicy)) {
    errors.push(notSupported(at("selectPolicy"), selectPolicy, SELECT_POLICIES));
  }
  if (policies.length === 0) errors.push(requiredField(at("policies"), "must specify at least one Policy"));
  errors.push(...validateEach(policies, (policy, i) => validatePolicy(policy, index(at("policies"), i))));
  if (tolerance !== undefined && (parseQuantity(tolerance)?.nanos ?? 0n) < 0n) {
    errors.push(invalidField(at("tolerance"), tolerance, "must be greater or equal to zero"));
  }
  return errors;
}

function validatePolicy({ type, value, periodSeconds }: HPAScalingPolicy, path: string): readonly FieldError[] {
  const at = (name: string): string => child(path, name);
  const errors: FieldError[] = [];
  if (!POLICY_TYPES.includes(type)) errors.push(notSupported(at("type"), type, POLICY_TYPES));
  if (value <= 0) errors.push(invalidField(at("value"), value, "must be greater than zero"));
  if (periodSeconds <= 0) errors.push(invalidField(at("periodSeconds"), periodSeconds, "must be greater than zero"));
  if (periodSeconds > PERIOD_SECONDS_MAX) {
    const detail = `must be less than or equal to ${PERIOD_SECONDS_MAX}`;
    errors.push(invalidField(at("periodSeconds"), periodSeconds, detail));
  }
  return errors;
}

export function validateAutoscalerStatus({ status }: HorizontalPodAutoscaler): readonly FieldError[] {
  return status === undefined
    ? []
    : validateNonNegativeFields(status, "status", ["currentReplicas", "desiredReplicas"]);
}
