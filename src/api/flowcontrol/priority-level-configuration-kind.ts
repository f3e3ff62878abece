import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type PriorityLevelConfiguration, priorityLevelConfiguration } from "./priority-level-configuration.ts";

export const priorityLevelConfigurationKind: Kind<PriorityLevelConfiguration> = {
  group: "flowcontrol.apiserver.svc.io",
  version: "v1",
  kind: "PriorityLevelConfiguration",
  listKind: "PriorityLevelConfigurationList",
  plural: "prioritylevelconfigurations",
  singular: "prioritylevelconfiguration",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("PriorityLevelConfiguration", { resetFields: [["metadata"], ["spec"]] })],
  storageName: "prioritylevelconfigurations",
  schema: priorityLevelConfiguration,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
