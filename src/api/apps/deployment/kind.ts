import { scaleSubresource } from "../../autoscaling/scale/kind.ts";
import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { containerColumns } from "../workload/columns.ts";
import { type Deployment, deployment } from "./schema.ts";
import { deploymentStrategy, prepareForStatusUpdate } from "./strategy.ts";
import { validateDeploymentStatus } from "./validation.ts";

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
    column("Ready", ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`),
    column("Up-to-date", ({ status }) => status?.updatedReplicas ?? 0),
    column("Available", ({ status }) => status?.availableReplicas ?? 0),
    ageColumn,
    ...containerColumns<Deployment>((object) => object.spec?.template),
    wideColumn("Selector", (object) => formatLabelSelector(object.spec?.selector)),
  ],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: deploymentStrategy,
};
