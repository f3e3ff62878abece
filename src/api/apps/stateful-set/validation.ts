/** Rules for StatefulSets. Pods and claims are validated when they are created. */
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { type FieldError, forbiddenField, invalidField, notSupported } from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { hasInvalidDeletionCost, validatePodAnnotations } from "../../core/pod-spec/annotation-validation.ts";
import type { PodSpec } from "../../core/pod-spec/schema.ts";
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
import { dns1123Label } from "../../meta/validation/names.ts";
import { validateAnnotations, validateLabels } from "../../meta/validation/object-meta.ts";
import {
  isValidSelector,
  validateAlwaysRestarts,
  validateSelector,
  validateTemplateLabels,
} from "../workload/validation.ts";
import {
  rollingUpdateStatefulSetStrategy,
  type StatefulSet,
  type StatefulSetSpec,
  type StatefulSetUpdateStrategy,
  statefulSetSpec,
  statefulSetUpdateStrategy,
} from "./schema.ts";

const NO_SPEC: PodSpec = { containers: [] };

export function validateStatefulSet({ spec }: StatefulSet, previous: StatefulSet | undefined): readonly FieldError[] {
  if (spec === undefined) return [];
  const { selector, template } = spec;
  return [
    ...validatePodManagement(spec.podManagementPolicy),
    ...validateUpdateStrategy(spec.updateStrategy ?? {}),
    ...validateRetention(spec),
    ...validateNonNegativeFields(spec, "spec", ["replicas", "minReadySeconds"]),
    ...validateNonNegative(spec.ordinals?.start, "spec.ordinals.start"),
    ...validateSelector(selector, "spec.selector", "statefulset"),
    ...(isValidSelector(selector)
      ? [
          ...validateTemplateLabels(selector, template, "spec.template"),
          ...validateLabels(template.metadata?.labels, "spec.template.labels"),
          ...validateAnnotations(template.metadata?.annotations, "spec.template.annotations"),
          ...validatePodAnnotations(template.metadata ?? {}, template.spec ?? NO_SPEC, "spec.template.annotations", {
            allowInvalidDeletionCost: hasInvalidDeletionCost(previous?.spec?.template.metadata),
          }),
        ]
      : [invalidField("spec.selector", goStruct(labelSelector, selector), "")]),
    ...validateAlwaysRestarts(template, "spec.template", "StatefulSet"),
    // The field is immutable, so that updates need not validate it.
    ...(previous === undefined ? validateServiceName(spec.serviceName) : []),
  ];
}

function validatePodManagement(policy: string | undefined): readonly FieldError[] {
  if (policy === "OrderedReady" || policy === "Parallel") return [];
  return [invalidField("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")];
}

function validateUpdateStrategy(strategy: StatefulSetUpdateStrategy): readonly FieldError[] {
  const at = "spec.updateStrategy.rollingUpdate";
  switch (strategy.type) {
    case "OnDelete":
      return strategy.rollingUpdate === undefined
        ? []
        : [
            invalidField(
              at,
              goStruct(rollingUpdateStatefulSetStrategy, strategy.rollingUpdate),
              "only allowed for updateStrategy 'RollingUpdate'",
            ),
          ];
    case "RollingUpdate":
      return [
        ...validateNonNegative(strategy.rollingUpdate?.partition, `${at}.partition`),
        ...validateMaxUnavailable(strategy.rollingUpdate?.maxUnavailable, `${at}.maxUnavailable`),
      ];
    default:
      return [
        invalidField(
          "spec.updateStrategy",
          goStruct(statefulSetUpdateStrategy, strategy),
          "must be 'RollingUpdate' or 'OnDelete'",
        ),
      ];
  }
}

function validateMaxUnavailable(value: number | string | undefined, path: string): readonly FieldError[] {
  if (value === undefined) return [];
  return [
    ...validateIntOrPercent(value, path),
    ...(intOrPercentValue(value) === 0 ? [invalidField(path, value, "cannot be 0")] : []),
    ...validateAtMostHundredPercent(value, path),
  ];
}

function validateRetention({ persistentVolumeClaimRetentionPolicy: policy }: StatefulSetSpec): readonly FieldError[] {
  if (policy === undefined) return [];
  return (["whenDeleted", "whenScaled"] as const)
    .filter((name) => policy[name] !== "Retain" && policy[name] !== "Delete")
    .map((name) =>
      notSupported(`spec.persistentVolumeClaimRetentionPolicy.${name}`, policy[name] ?? "", ["Retain", "Delete"]),
    );
}

function validateServiceName(name = ""): readonly FieldError[] {
  return name === "" ? [] : dns1123Label(name).map((problem) => invalidField("spec.serviceName", name, problem));
}

const MUTABLE: readonly (keyof StatefulSetSpec)[] = [
  "replicas",
  "ordinals",
  "template",
  "updateStrategy",
  "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy",
  "minReadySeconds",
];
const IMMUTABLE =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

export function validateStatefulSetUpdate(next: StatefulSet, previous: StatefulSet): readonly FieldError[] {
  const same = semanticEqual(statefulSetSpec, immutablePart(next.spec), immutablePart(previous.spec));
  return same ? [] : [forbiddenField("spec", IMMUTABLE)];
}

function immutablePart(spec: StatefulSetSpec | undefined): object {
  return Object.fromEntries(Object.entries(spec ?? {}).filter(([name]) => !(MUTABLE as string[]).includes(name)));
}

const PARTS = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"] as const;

export function validateStatefulSetStatus(next: StatefulSet, previous: StatefulSet): readonly FieldError[] {
  const { status } = next;
  if (status === undefined) return [];
  const { replicas, readyReplicas = 0, availableReplicas = 0 } = status;
  return [
    ...validateNonNegativeFields(status, "status", ["replicas", ...PARTS, "observedGeneration", "collisionCount"]),
    ...PARTS.filter((name) => (status[name] ?? 0) > replicas).map((name) =>
      invalidField(`status.${name}`, status[name] ?? 0, "cannot be greater than status.replicas"),
    ),
    ...(availableReplicas > readyReplicas
      ? [invalidField("status.availableReplicas", availableReplicas, "cannot be greater than status.readyReplicas")]
      : []),
    ...validateNotDecremented(status.collisionCount, previous.status?.collisionCount, "status.collisionCount"),
  ];
}
