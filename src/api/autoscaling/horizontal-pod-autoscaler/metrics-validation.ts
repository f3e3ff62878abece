/** Rules for the metrics of an autoscaler. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { validateContainerResourceName } from "../../core/resources/names.ts";
import { parseQuantity } from "../../meta/quantity.ts";
import { dns1123Label, pathSegment, validateName } from "../../meta/validation/names.ts";
import type {
  CrossVersionObjectReference,
  ExternalMetricSource,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
  ObjectMetricSource,
  PodsMetricSource,
} from "./schema.ts";

const TYPES = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const TARGET_TYPES = ["Utilization", "Value", "AverageValue"];
/** The field of the source by metric type. */
const MEMBERS = {
  Object: "object",
  External: "external",
  Pods: "pods",
  Resource: "resource",
  ContainerResource: "containerResource",
} as const satisfies Readonly<Record<string, keyof MetricSpec>>;
type SourceName = (typeof MEMBERS)[keyof typeof MEMBERS];

export function validateMetrics(
  metrics: readonly MetricSpec[],
  path: string,
  minReplicas: number | undefined,
): readonly FieldError[] {
  const wakes = metrics.some(({ type }) => type === "Object" || type === "External");
  const asleep = "must specify at least one Object or External metric to support scaling to zero replicas";
  return [
    ...validateEach(metrics, (metric, i) => validateMetric(metric, index(path, i))),
    ...(minReplicas === 0 && !wakes ? [forbiddenField(path, asleep)] : []),
  ];
}

function validateMetric(metric: MetricSpec, path: string): readonly FieldError[] {
  const present = Object.values(MEMBERS).filter((name) => metric[name] !== undefined);
  const [first] = present;
  return [
    ...validateType(metric.type, child(path, "type")),
    ...(first === undefined ? [] : validateSource(metric, first, child(path, first))),
    ...validateChoice(metric, present, path),
  ];
}

function validateType(type: string, field: string): readonly FieldError[] {
  return [
    ...(type === "" ? [requiredField(field, "must specify a metric source type")] : []),
    // Kubernetes checks the type twice.
    ...(TYPES.includes(type) ? [] : [notSupported(field, type, TYPES), notSupported(field, type, TYPES)]),
  ];
}

/** Requires the source of the type, and no other. */
function validateChoice(metric: MetricSpec, present: readonly SourceName[], path: string): readonly FieldError[] {
  const expected = Object.hasOwn(MEMBERS, metric.type) ? MEMBERS[metric.type as keyof typeof MEMBERS] : undefined;
  const errors: FieldError[] = [];
  if (expected !== undefined && metric[expected] === undefined) {
    errors.push(requiredField(child(path, expected), "must populate information for the given metric source"));
  }
  if (present.length === 1) return errors;
  const others = present.filter((name) => name !== expected);
  const detail = "must populate the given metric source only";
  return [...errors, ...others.map((name) => forbiddenField(child(path, name), detail))];
}

function validateSource(metric: MetricSpec, name: SourceName, path: string): readonly FieldError[] {
  switch (name) {
    case "object":
      return validateObject(metric.object!, path);
    case "external":
      return validateExternal(metric.external!, path);
    case "pods":
      return validatePods(metric.pods!, path);
    case "resource": {
      const source = metric.resource!;
      return [...validateResourceName(source.name, child(path, "name")), ...validateShare(source.target, path)];
    }
    case "containerResource": {
      const source = metric.containerResource!;
      return [
        ...validateResourceName(source.name, child(path, "name")),
        ...(source.name === "" ? [] : validateContainerResourceName(source.name, child(path, "name"), invalidField)),
        ...(source.container === ""
          ? [requiredField(child(path, "container"), "must specify a container")]
          : validateName(child(path, "container"), source.container, dns1123Label)),
        ...validateShare(source.target, path),
      ];
    }
    default:
      return name satisfies never;
  }
}

function validateObject({ describedObject, metric, target }: ObjectMetricSource, path: string): readonly FieldError[] {
  const none = target.value === undefined && target.averageValue === undefined;
  return [
    ...validateReference(describedObject, child(path, "describedObject")),
    ...validateIdentifier(metric, child(path, "metric")),
    ...validateTarget(target, child(path, "target")),
    ...(none
      ? [requiredField(child(path, "target.averageValue"), "must set either a target value or averageValue")]
      : []),
  ];
}

function validateExternal({ metric, target }: ExternalMetricSource, path: string): readonly FieldError[] {
  const errors = [
    ...validateIdentifier(metric, child(path, "metric")),
    ...validateTarget(target, child(path, "target")),
  ];
  if (target.value === undefined && target.averageValue === undefined) {
    const detail = "must set either a target value for metric or a per-pod target";
    errors.push(requiredField(child(path, "target.averageValue"), detail));
  }
  if (target.value !== undefined && target.averageValue !== undefined) {
    const detail = "may not set both a target value for metric and a per-pod target";
    errors.push(forbiddenField(child(path, "target.value"), detail));
  }
  return errors;
}

function validatePods({ metric, target }: PodsMetricSource, path: string): readonly FieldError[] {
  const detail = "must specify a positive target averageValue";
  return [
    ...validateIdentifier(metric, child(path, "metric")),
    ...validateTarget(target, child(path, "target")),
    ...(target.averageValue === undefined ? [requiredField(child(path, "target.averageValue"), detail)] : []),
  ];
}

function validateResourceName(name: string, field: string): readonly FieldError[] {
  return name === "" ? [requiredField(field, "must specify a resource name")] : [];
}

/** Requires either a utilization or an average value. */
function validateShare(target: MetricTarget, path: string): readonly FieldError[] {
  const errors = [...validateTarget(target, child(path, "target"))];
  if (target.averageUtilization === undefined && target.averageValue === undefined) {
    const detail = "must set either a target raw value or a target utilization";
    errors.push(requiredField(child(path, "target.averageUtilization"), detail));
  }
  if (target.averageUtilization !== undefined && target.averageValue !== undefined) {
    const detail = "may not set both a target raw value and a target utilization";
    errors.push(forbiddenField(child(path, "target.averageValue"), detail));
  }
  return errors;
}

function validateTarget(target: MetricTarget, path: string): readonly FieldError[] {
  const { type, averageUtilization } = target;
  const at = child(path, "type");
  return [
    ...(type === "" ? [requiredField(at, "must specify a metric target type")] : []),
    ...(TARGET_TYPES.includes(type)
      ? []
      : [invalidField(at, type, "must be either Utilization, Value, or AverageValue")]),
    ...(["value", "averageValue"] as const)
      .filter((name) => target[name] !== undefined && !isPositive(target[name]))
      .map((name) => invalidField(child(path, name), target[name], "must be positive")),
    ...(averageUtilization !== undefined && averageUtilization < 1
      ? [invalidField(child(path, "averageUtilization"), averageUtilization, "must be greater than 0")]
      : []),
  ];
}

function isPositive(amount: string): boolean {
  return (parseQuantity(amount)?.nanos ?? 0n) > 0n;
}

function validateIdentifier({ name }: MetricIdentifier, path: string): readonly FieldError[] {
  const field = child(path, "name");
  if (name === "") return [requiredField(field, "must specify a metric name")];
  return pathSegment(name).map((problem) => invalidField(field, name, problem));
}

export function validateReference(reference: CrossVersionObjectReference, path: string): readonly FieldError[] {
  return (["kind", "name"] as const).flatMap((member) => {
    const [field, text] = [child(path, member), reference[member]];
    if (text === "") return [requiredField(field)];
    return pathSegment(text).map((problem) => invalidField(field, text, problem));
  });
}
