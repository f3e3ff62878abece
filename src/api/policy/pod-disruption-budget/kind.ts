import { type FieldError, invalidField, notSupported } from "../../../schema/validation/field-error.ts";
import { createPrepareForUpdate, prepareForCreate } from "../../apps/workload/strategy.ts";
import { validateStoredSelector } from "../../apps/workload/validation.ts";
import { ageColumn, column, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";
import { validateConditions } from "../../meta/validation/condition.ts";
import { validateAtMostHundredPercent, validateIntOrPercent } from "../../meta/validation/int-or-percent.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { statusSubresource } from "../../strategy.ts";
import {
  type PodDisruptionBudget,
  type PodDisruptionBudgetSpec,
  podDisruptionBudget,
  podDisruptionBudgetSpec,
} from "./schema.ts";

const EVICTION_POLICIES = ["AlwaysAllow", "IfHealthyBudget"];

function validatePodDisruptionBudgetSpec(spec: PodDisruptionBudgetSpec, stored: PodDisruptionBudgetSpec | undefined): FieldError[] {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec;
  const both = minAvailable !== undefined && maxUnavailable !== undefined;
  return [
    ...(both ? [invalidField("spec", spec, "minAvailable and maxUnavailable cannot be both set")] : []),
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

function validatePodDisruptionBudgetStatus({ status }: PodDisruptionBudget): readonly FieldError[] {
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

const podDisruptionBudgetStrategy: Strategy<PodDisruptionBudget> = {
  prepareForCreate,
  prepareForUpdate: createPrepareForUpdate(podDisruptionBudgetSpec),
  validate: ({ spec }, previous) => validatePodDisruptionBudgetSpec(spec ?? {}, previous?.spec),
  allowUnconditionalUpdate: false,
};

export const podDisruptionBudgetKind: Kind<PodDisruptionBudget> = {
  group: "policy",
  version: "v1",
  kind: "PodDisruptionBudget",
  listKind: "PodDisruptionBudgetList",
  plural: "poddisruptionbudgets",
  singular: "poddisruptionbudget",
  shortNames: ["pdb"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("PodDisruptionBudget", { validateUpdate: validatePodDisruptionBudgetStatus })],
  storageName: "poddisruptionbudgets",
  schema: podDisruptionBudget,
  columns: [
    nameColumn,
    column("Min Available", ({ spec }) => String(spec?.minAvailable ?? "N/A"), "Pods that must remain."),
    column("Max Unavailable", ({ spec }) => String(spec?.maxUnavailable ?? "N/A"), "Pods that may be missing."),
    integerColumn("Allowed Disruptions", ({ status }) => status?.disruptionsAllowed ?? 0, "Pods that may go now."),
    ageColumn,
  ],
  selectableFields: {},
  nameFormat: pathSegment,
  allowsAnyFinalizer: true,
  strategy: podDisruptionBudgetStrategy,
};
