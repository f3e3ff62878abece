import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type FlowSchema, flowSchema } from "./flow-schema.ts";

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
  subresources: [statusSubresource("FlowSchema", { resetFields: [["metadata"], ["spec"]] })],
  storageName: "flowschemas",
  schema: flowSchema,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
