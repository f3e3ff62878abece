import { ageColumn, column, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { statusSubresource } from "../../strategy.ts";
import { type PodDisruptionBudget, podDisruptionBudget } from "./schema.ts";
import { podDisruptionBudgetStrategy } from "./strategy.ts";
import { validatePodDisruptionBudgetStatus } from "./validation.ts";

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
    column("Min Available", ({ spec }) => String(spec?.minAvailable ?? "N/A")),
    column("Max Unavailable", ({ spec }) => String(spec?.maxUnavailable ?? "N/A")),
    integerColumn("Allowed Disruptions", ({ status }) => status?.disruptionsAllowed ?? 0),
    ageColumn,
  ],
  selectableFields: {},
  nameFormat: pathSegment,
  allowsAnyFinalizer: true,
  updateChecks: ["spec"],
  strategy: podDisruptionBudgetStrategy,
};
