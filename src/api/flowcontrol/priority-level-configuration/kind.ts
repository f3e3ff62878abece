import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type PriorityLevelConfiguration, priorityLevelConfiguration, type QueuingConfiguration } from "./schema.ts";
import { priorityLevelConfigurationStrategy } from "./strategy.ts";
import { validatePriorityLevel } from "./validation.ts";

/** Kubernetes shows no shares of the exempt level. */
function sharesOf({ spec }: PriorityLevelConfiguration): number | string {
  return spec?.limited?.nominalConcurrencyShares ?? "<none>";
}

function queuingOf({ spec }: PriorityLevelConfiguration): QueuingConfiguration | undefined {
  return spec?.limited?.limitResponse?.queuing;
}

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
  subresources: [
    statusSubresource("PriorityLevelConfiguration", {
      prepareForUpdate: replaceStatusOnly,
      validateUpdate: validatePriorityLevel,
      resetFields: [["metadata"], ["spec"]],
    }),
  ],
  storageName: "prioritylevelconfigurations",
  schema: priorityLevelConfiguration,
  columns: [
    nameColumn,
    column("Type", ({ spec }) => spec?.type ?? ""),
    column("NominalConcurrencyShares", sharesOf),
    column("Queues", (object) => queuingOf(object)?.queues ?? "<none>"),
    column("HandSize", (object) => queuingOf(object)?.handSize ?? "<none>"),
    column("QueueLengthLimit", (object) => queuingOf(object)?.queueLengthLimit ?? "<none>"),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy: priorityLevelConfigurationStrategy,
};
