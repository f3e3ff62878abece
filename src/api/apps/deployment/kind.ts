import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { type FieldError, forbiddenField, invalidField, notSupported } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { scaleSubresource } from "../../autoscaling/scale/kind.ts";
import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import {
  validateNonNegative,
  validateNonNegativeFields,
  validateNotDecremented,
} from "../../meta/validation/bounds.ts";
import { validateImmutableSelector } from "../../meta/validation/immutable.ts";
import {
  intOrPercentValue,
  validateAtMostHundredPercent,
  validateIntOrPercent,
} from "../../meta/validation/int-or-percent.ts";
import { keepStatus, replaceStatus, statusSubresource, updateGeneration } from "../../strategy.ts";
import { containerColumns } from "../workload/columns.ts";
import { dropTerminatingReplicas } from "../workload/status-validation.ts";
import { controllerWarnings, prepareForCreate, setTemplateDefaults, specOf } from "../workload/strategy.ts";
import {
  isValidSelector,
  validateAlwaysRestarts,
  validateSelector,
  validateTemplate,
  validateTemplateLabels,
} from "../workload/validation.ts";
import {
  type Deployment,
  type DeploymentSpec,
  type DeploymentStatus,
  type DeploymentStrategy,
  deployment,
  deploymentSpec,
  type RollingUpdateDeployment,
} from "./schema.ts";

const REPLICAS = 1;
const REVISIONS_KEPT = 10;
const PROGRESS_SECONDS = 600;
/** Of the pods may be missing, and as many too many, while new ones replace old ones. */
const DEFAULT_ROLLING_UPDATE_LIMIT = "25%";

function setDeploymentDefaults(object: Deployment): Deployment {
  const spec = specOf(object);
  return {
    ...object,
    spec: {
      ...spec,
      replicas: spec.replicas ?? REPLICAS,
      template: setTemplateDefaults(spec.template),
      strategy: setStrategyDefaults(spec.strategy ?? {}),
      revisionHistoryLimit: spec.revisionHistoryLimit ?? REVISIONS_KEPT,
      progressDeadlineSeconds: spec.progressDeadlineSeconds ?? PROGRESS_SECONDS,
    },
  };
}

function setStrategyDefaults(strategy: DeploymentStrategy): DeploymentStrategy {
  const type = strategy.type || "RollingUpdate";
  if (type !== "RollingUpdate") return strategy;
  const { maxUnavailable = DEFAULT_ROLLING_UPDATE_LIMIT, maxSurge = DEFAULT_ROLLING_UPDATE_LIMIT } =
    strategy.rollingUpdate ?? {};
  return { ...strategy, type, rollingUpdate: { maxUnavailable, maxSurge } };
}

function validateDeploymentSpec(spec: DeploymentSpec, previous: DeploymentSpec | undefined): readonly FieldError[] {
  return [
    ...validateNonNegative(spec.replicas, "spec.replicas"),
    ...validateSelector(spec.selector, "spec.selector", "deployment"),
    ...(isValidSelector(spec.selector)
      ? [
          ...validateTemplateLabels(spec.selector, spec.template, "spec.template"),
          ...validateTemplate(spec.template, previous?.template, "spec.template"),
          ...validateAlwaysRestarts(spec.template, "spec.template", "ReplicaSet"),
        ]
      : [invalidField("spec.selector", spec.selector, "invalid label selector")]),
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

function validateDeploymentStatus(next: Deployment, previous: Deployment): readonly FieldError[] {
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

/** Annotations count too: `kubectl rollout` keeps notes in them. */
function prepareForUpdate(next: Deployment, previous: Deployment): Deployment {
  const same =
    semanticEqual(deploymentSpec, next.spec, previous.spec) &&
    deepEqual(next.metadata?.annotations, previous.metadata?.annotations);
  return updateGeneration(keepStatus(next, previous), previous, !same);
}

function prepareForStatusUpdate(next: Deployment, previous: Deployment): Deployment {
  const { labels: _, ...metadata } = next.metadata ?? {};
  const labels = previous.metadata?.labels;
  const kept: Deployment = { ...next, metadata: labels === undefined ? metadata : { ...metadata, labels } };
  return replaceStatus(dropTerminatingReplicas(kept, previous), previous);
}

const deploymentStrategy: Strategy<Deployment> = {
  setDefaults: setDeploymentDefaults,
  prepareForCreate,
  prepareForUpdate,
  validate: (object, previous) => (object.spec === undefined ? [] : validateDeploymentSpec(object.spec, previous?.spec)),
  validateUpdate: (next, previous) => validateImmutableSelector(next.spec?.selector, previous.spec?.selector),
  warnings: controllerWarnings,
};

export const deploymentKind: Kind<Deployment> = {
  group: "apps",
  version: "v1",
  kind: "Deployment",
  listKind: "DeploymentList",
  plural: "deployments",
  singular: "deployment",
  shortNames: ["deploy"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    scaleSubresource(({ spec }) => spec?.selector),
    statusSubresource("Deployment", {
      prepareForUpdate: prepareForStatusUpdate,
      validateUpdate: validateDeploymentStatus,
      resetFields: [["spec"], ["metadata", "labels"]],
    }),
  ],
  storageName: "deployments",
  schema: deployment,
  columns: [
    nameColumn,
    column(
      "Ready",
      ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
      "Pods that are ready, of those wanted.",
    ),
    column("Up-to-date", ({ status }) => status?.updatedReplicas ?? 0, "Pods of the present template."),
    column("Available", ({ status }) => status?.availableReplicas ?? 0, "Pods ready for minReadySeconds or longer."),
    ageColumn,
    ...containerColumns<Deployment>((object) => object.spec?.template),
    wideColumn("Selector", (object) => formatLabelSelector(object.spec?.selector), "Which pods belong to it."),
  ],
  selectableFields: {},
  strategy: deploymentStrategy,
};
