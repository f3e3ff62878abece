import { deepEqual } from "../../../schema/value/equal.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import {
  dropStatus,
  keepStatus,
  replaceStatusOnly,
  setFirstGeneration,
  statusSubresource,
  updateGeneration,
} from "../../strategy.ts";
import { type FlowSchema, flowSchema } from "./schema.ts";
import { emptySpec, validateFlowSchema } from "./validation.ts";

const PRECEDENCE = 1000;

const flowSchemaStrategy: Strategy<FlowSchema> = {
  setDefaults: ({ spec = emptySpec, ...object }) => ({
    ...object,
    spec: { ...spec, matchingPrecedence: spec.matchingPrecedence || PRECEDENCE },
  }),
  prepareForCreate: (object) => setFirstGeneration(dropStatus(object)),
  prepareForUpdate: (next, previous) =>
    updateGeneration(keepStatus(next, previous), previous, !deepEqual(next.spec, previous.spec)),
  validate: validateFlowSchema,
};

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
    column("PriorityLevel", ({ spec }) => spec?.priorityLevelConfiguration.name ?? "", "The level of its requests."),
    column("MatchingPrecedence", ({ spec }) => spec?.matchingPrecedence ?? 0, "The lowest that matches counts."),
    column("DistinguisherMethod", ({ spec }) => spec?.distinguisherMethod?.type ?? "<none>"),
    ageColumn,
    column(
      "MissingPL",
      ({ status }) => status?.conditions?.find(({ type }) => type === "Dangling")?.status ?? "?",
      "Whether there is no such priority level.",
    ),
  ],
  selectableFields: {},
  strategy: flowSchemaStrategy,
};
