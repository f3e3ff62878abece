import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { scaleSubresource } from "../../autoscaling/scale/kind.ts";
import { ageColumn, integerColumn, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";
import { validateImmutableSelector } from "../../meta/validation/immutable.ts";
import { replaceStatus, statusSubresource } from "../../strategy.ts";
import { containerColumns } from "../workload/columns.ts";
import { dropTerminatingReplicas, validateReplicaStatus } from "../workload/status-validation.ts";
import {
  controllerWarnings,
  createPrepareForUpdate,
  prepareForCreate,
  setTemplateDefaults,
  specOf,
} from "../workload/strategy.ts";
import {
  isValidSelector,
  validateAlwaysRestarts,
  validateSelector,
  validateTemplate,
  validateTemplateLabels,
} from "../workload/validation.ts";
import { type ReplicaSet, type ReplicaSetSpec, replicaSet, replicaSetSpec } from "./schema.ts";

function setReplicaSetDefaults(object: ReplicaSet): ReplicaSet {
  const spec = specOf(object);
  return { ...object, spec: { ...spec, replicas: spec.replicas ?? 1, template: setTemplateDefaults(spec.template) } };
}

function validateReplicaSetSpec(spec: ReplicaSetSpec, previous: ReplicaSetSpec | undefined): readonly FieldError[] {
  const { selector, template = {} } = spec;
  return [
    ...validateNonNegativeFields(spec, "spec", ["replicas", "minReadySeconds"]),
    ...validateSelector(selector, "spec.selector", "deployment"),
    ...(isValidSelector(selector)
      ? [
          ...validateTemplateLabels(selector, template, "spec.template"),
          ...validateTemplate(template, previous?.template, "spec.template"),
          ...validateAlwaysRestarts(template, "spec.template", "ReplicaSet"),
        ]
      : [invalidField("spec.selector", selector, "invalid label selector")]),
  ];
}

const replicaSetStrategy: Strategy<ReplicaSet> = {
  setDefaults: setReplicaSetDefaults,
  prepareForCreate,
  prepareForUpdate: createPrepareForUpdate(replicaSetSpec),
  validate: (object, previous) => (object.spec === undefined ? [] : validateReplicaSetSpec(object.spec, previous?.spec)),
  validateUpdate: (next, previous) => validateImmutableSelector(next.spec?.selector, previous.spec?.selector),
  warnings: controllerWarnings,
};

export const replicaSetKind: Kind<ReplicaSet> = {
  group: "apps",
  version: "v1",
  kind: "ReplicaSet",
  listKind: "ReplicaSetList",
  plural: "replicasets",
  singular: "replicaset",
  shortNames: ["rs"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    scaleSubresource(({ spec }) => spec?.selector),
    statusSubresource("ReplicaSet", {
      prepareForUpdate: (next, previous) => replaceStatus(dropTerminatingReplicas(next, previous), previous),
      validateUpdate: (next) => validateReplicaStatus(next.status),
    }),
  ],
  storageName: "replicasets",
  schema: replicaSet,
  columns: [
    nameColumn,
    integerColumn("Desired", ({ spec }) => spec?.replicas ?? 0, "Pods wanted."),
    integerColumn("Current", ({ status }) => status?.replicas ?? 0, "Pods there are."),
    integerColumn("Ready", ({ status }) => status?.readyReplicas ?? 0, "Pods that are ready."),
    ageColumn,
    ...containerColumns<ReplicaSet>((object) => object.spec?.template),
    wideColumn("Selector", (object) => formatLabelSelector(object.spec?.selector), "Which pods belong to it."),
  ],
  selectableFields: {},
  strategy: replicaSetStrategy,
};
