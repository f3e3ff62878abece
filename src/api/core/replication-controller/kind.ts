import { type FieldError, requiredField } from "../../../schema/validation/field-error.ts";
import { containerColumns } from "../../apps/workload/columns.ts";
import { validateReplicaStatus } from "../../apps/workload/status-validation.ts";
import {
  controllerWarnings,
  createPrepareForUpdate,
  prepareForCreate,
  setTemplateDefaults,
  specOf,
} from "../../apps/workload/strategy.ts";
import { validateAlwaysRestarts, validateTemplate, validateTemplateLabels } from "../../apps/workload/validation.ts";
import { scaleSubresource } from "../../autoscaling/scale/kind.ts";
import { ageColumn, integerColumn, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatLabels } from "../../columns/selector-text.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";
import { statusSubresource } from "../../strategy.ts";
import {
  type ReplicationController,
  type ReplicationControllerSpec,
  replicationController,
  replicationControllerSpec,
} from "./schema.ts";

type Labels = Readonly<Record<string, string>>;

const isEmpty = (labels: Labels | undefined): boolean => Object.keys(labels ?? {}).length === 0;

/** The labels of the template are taken for the selector and for the controller itself, where these have none. */
function setReplicationControllerDefaults(object: ReplicationController): ReplicationController {
  const spec = specOf(object);
  const labels = spec.template?.metadata?.labels;
  const named = labels === undefined || !isEmpty(object.metadata?.labels);
  const selected = labels === undefined || !isEmpty(spec.selector);
  return {
    ...object,
    ...(named ? {} : { metadata: { ...object.metadata, labels } }),
    spec: {
      ...spec,
      replicas: spec.replicas ?? 1,
      ...(selected ? {} : { selector: labels }),
      ...(spec.template === undefined ? {} : { template: setTemplateDefaults(spec.template) }),
    },
  };
}

function validateReplicationControllerSpec(
  spec: ReplicationControllerSpec,
  previous: ReplicationControllerSpec | undefined,
): readonly FieldError[] {
  const { selector, template } = spec;
  return [
    ...validateNonNegativeFields(spec, "spec", ["minReadySeconds"]),
    ...(isEmpty(selector) ? [requiredField("spec.selector")] : []),
    ...validateNonNegativeFields(spec, "spec", ["replicas"]),
    ...(template === undefined
      ? [requiredField("spec.template")]
      : [
          ...validateTemplateLabels({ matchLabels: selector }, template, "spec.template"),
          ...validateTemplate(template, previous?.template, "spec.template"),
          ...validateAlwaysRestarts(template, "spec.template", "ReplicationController"),
        ]),
  ];
}

const replicationControllerStrategy: Strategy<ReplicationController> = {
  setDefaults: setReplicationControllerDefaults,
  prepareForCreate,
  prepareForUpdate: createPrepareForUpdate(replicationControllerSpec),
  validate: (object, previous) => (object.spec === undefined ? [] : validateReplicationControllerSpec(object.spec, previous?.spec)),
  warnings: controllerWarnings,
  orphansDependentsByDefault: true,
};

export const replicationControllerKind: Kind<ReplicationController> = {
  group: "",
  version: "v1",
  kind: "ReplicationController",
  listKind: "ReplicationControllerList",
  plural: "replicationcontrollers",
  singular: "replicationcontroller",
  shortNames: ["rc"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    scaleSubresource(({ spec }) => ({ matchLabels: spec?.selector })),
    statusSubresource("ReplicationController", { validateUpdate: (next) => validateReplicaStatus(next.status) }),
  ],
  storageName: "controllers",
  schema: replicationController,
  columns: [
    nameColumn,
    integerColumn("Desired", ({ spec }) => spec?.replicas ?? 0, "Pods wanted."),
    integerColumn("Current", ({ status }) => status?.replicas ?? 0, "Pods there are."),
    integerColumn("Ready", ({ status }) => status?.readyReplicas ?? 0, "Pods that are ready."),
    ageColumn,
    ...containerColumns<ReplicationController>((object) => object.spec?.template),
    wideColumn("Selector", (object) => formatLabels(object.spec?.selector), "Which pods belong to it."),
  ],
  selectableFields: { "status.replicas": (object) => String(object.status?.replicas ?? 0) },
  strategy: replicationControllerStrategy,
};
