import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type Deployment, deployment } from "./deployment.ts";

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
  subresources: [statusSubresource("Deployment")],
  storageName: "deployments",
  schema: deployment,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
