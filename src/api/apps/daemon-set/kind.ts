import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { type FieldError, invalidField, notSupported, requiredField } from "../../../schema/validation/field-error.ts";
import { ageColumn, column, integerColumn, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatLabelSelector, formatLabels } from "../../columns/selector-text.ts";
import { podTemplateSpec } from "../../core/pod-template/schema.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { validateNonNegativeFields, validateNotDecremented } from "../../meta/validation/bounds.ts";
import { validateImmutableSelector } from "../../meta/validation/immutable.ts";
import {
  intOrPercentValue,
  validateAtMostHundredPercent,
  validateIntOrPercent,
} from "../../meta/validation/int-or-percent.ts";
import { statusSubresource } from "../../strategy.ts";
import { containerColumns } from "../workload/columns.ts";
import {
  controllerWarnings,
  createPrepareForUpdate,
  prepareForCreate,
  setTemplateDefaults,
  specOf,
} from "../workload/strategy.ts";
import {
  isEmptySelector,
  isValidSelector,
  validateAlwaysRestarts,
  validateStoredSelector,
  validateTemplate,
  validateTemplateLabels,
} from "../workload/validation.ts";
import {
  type DaemonSet,
  type DaemonSetSpec,
  type DaemonSetUpdateStrategy,
  daemonSet,
  daemonSetSpec,
  type RollingUpdateDaemonSet,
} from "./schema.ts";

/** How many templates the set has had: what was a member of the spec before apps/v1. */
const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

function setDaemonSetDefaults(object: DaemonSet): DaemonSet {
  const spec = specOf(object);
  return {
    ...object,
    spec: {
      ...spec,
      template: setTemplateDefaults(spec.template),
      updateStrategy: setUpdateStrategyDefaults(spec.updateStrategy ?? {}),
      revisionHistoryLimit: spec.revisionHistoryLimit ?? 10,
    },
  };
}

function setUpdateStrategyDefaults(strategy: DaemonSetUpdateStrategy): DaemonSetUpdateStrategy {
  const type = strategy.type || "RollingUpdate";
  if (type !== "RollingUpdate") return strategy;
  const { maxUnavailable = 1, maxSurge = 0 } = strategy.rollingUpdate ?? {};
  return { ...strategy, type, rollingUpdate: { maxUnavailable, maxSurge } };
}

function templateGeneration(object: DaemonSet): number {
  return Math.trunc(Number(object.metadata?.annotations?.[TEMPLATE_GENERATION] ?? 0)) || 0;
}

function setTemplateGeneration(object: DaemonSet, generation: number): DaemonSet {
  const annotations = { ...object.metadata?.annotations, [TEMPLATE_GENERATION]: String(generation) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function validateDaemonSetSpec(spec: DaemonSetSpec, previous: DaemonSetSpec | undefined): readonly FieldError[] {
  const { selector, template } = spec;
  return [
    ...validateStoredSelector(selector, previous?.selector, "spec.selector"),
    ...(isValidSelector(selector) ? validateTemplateLabels(selector, template, "spec.template") : []),
    ...(selector !== undefined && isEmptySelector(selector)
      ? [invalidField("spec.selector", selector, "empty selector is invalid for daemonset")]
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

/** A node either does without its pod for a while, or has two: one of the amounts is zero, and only one. */
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

function validateDaemonSetStatus(next: DaemonSet, previous: DaemonSet): readonly FieldError[] {
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

const countChanges = createPrepareForUpdate<DaemonSet>(daemonSetSpec);

/** Clients cannot change how many templates there were. */
function prepareForUpdate(next: DaemonSet, previous: DaemonSet): DaemonSet {
  const changed = !semanticEqual(podTemplateSpec, next.spec?.template, previous.spec?.template);
  const generation = templateGeneration(previous) + (changed ? 1 : 0);
  return setTemplateGeneration(countChanges(next, previous), generation);
}

const daemonSetStrategy: Strategy<DaemonSet> = {
  // Whoever writes the object writes the annotation, whether it is sent or not.
  setDefaults: (object) => setTemplateGeneration(setDaemonSetDefaults(object), templateGeneration(object)),
  prepareForCreate: (object) =>
    setTemplateGeneration(prepareForCreate(object), Math.max(1, templateGeneration(object))),
  prepareForUpdate: prepareForUpdate,
  validate: (object, previous) => (object.spec === undefined ? [] : validateDaemonSetSpec(object.spec, previous?.spec)),
  validateUpdate: (next, previous) => validateImmutableSelector(next.spec?.selector, previous.spec?.selector),
  warnings: controllerWarnings,
};

export const daemonSetKind: Kind<DaemonSet> = {
  group: "apps",
  version: "v1",
  kind: "DaemonSet",
  listKind: "DaemonSetList",
  plural: "daemonsets",
  singular: "daemonset",
  shortNames: ["ds"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("DaemonSet", { validateUpdate: validateDaemonSetStatus })],
  storageName: "daemonsets",
  schema: daemonSet,
  columns: [
    nameColumn,
    integerColumn("Desired", ({ status }) => status?.desiredNumberScheduled ?? 0, "Nodes that are to run its pod."),
    integerColumn("Current", ({ status }) => status?.currentNumberScheduled ?? 0, "Nodes that do run it."),
    integerColumn("Ready", ({ status }) => status?.numberReady ?? 0, "Nodes where it is ready."),
    integerColumn(
      "Up-to-date",
      ({ status }) => status?.updatedNumberScheduled ?? 0,
      "Nodes with the present template.",
    ),
    integerColumn("Available", ({ status }) => status?.numberAvailable ?? 0, "Nodes where it has been ready a while."),
    column("Node Selector", ({ spec }) => formatLabels(spec?.template.spec?.nodeSelector), "What its nodes have."),
    ageColumn,
    ...containerColumns<DaemonSet>((object) => object.spec?.template),
    wideColumn("Selector", (object) => formatLabelSelector(object.spec?.selector), "Which pods belong to it."),
  ],
  selectableFields: {},
  strategy: daemonSetStrategy,
};
