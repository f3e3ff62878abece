import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type FlowSchema, flowSchema } from "./schema.ts";
import { flowSchemaStrategy } from "./strategy.ts";
import { validateFlowSchema } from "./validation.ts";

function precedenceOf({ spec }: FlowSchema): number {
  return spec?.matchingPrecedence ?? 0;
}

export const flowSchemaKind: Kind<FlowSchema> = {
  group: "flowcontrol.apiserver.svc.io",
  version: "v1",
  kind: "FlowSchema",
  listKind: "FlowSchemaList",
  plural: "flowschemas",
  singular: "flowschema",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [
    statusSubresource("FlowSchema", {
      prepareForUpdate: replaceStatusOnly,
      validateUpdate: validateFlowSchema,
      resetFields: [["metadata"], ["spec"]],
    }),
  ],
  storageName: "flowschemas",
  schema: flowSchema,
  columns: [
    nameColumn,
    column("PriorityLevel", ({ spec }) => spec?.priorityLevelConfiguration.name ?? ""),
    column("MatchingPrecedence", precedenceOf),
    column("DistinguisherMethod", ({ spec }) => spec?.distinguisherMethod?.type ?? "<none>"),
    ageColumn,
    column("MissingPL", ({ status }) => status?.conditions?.find(({ type }) => type === "Dangling")?.status ?? "?"),
  ],
  compareRows: (a, b) => precedenceOf(a) - precedenceOf(b),
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy: flowSchemaStrategy,
};
