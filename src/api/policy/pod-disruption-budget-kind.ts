import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type PodDisruptionBudget, podDisruptionBudget } from "./pod-disruption-budget.ts";

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
  subresources: [statusSubresource("PodDisruptionBudget")],
  storageName: "poddisruptionbudgets",
  schema: podDisruptionBudget,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
