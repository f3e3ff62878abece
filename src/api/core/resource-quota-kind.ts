import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type ResourceQuota, resourceQuota } from "./resource-quota.ts";

export const resourceQuotaKind: Kind<ResourceQuota> = {
  group: "",
  version: "v1",
  kind: "ResourceQuota",
  listKind: "ResourceQuotaList",
  plural: "resourcequotas",
  singular: "resourcequota",
  shortNames: ["quota"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("ResourceQuota")],
  storageName: "resourcequotas",
  schema: resourceQuota,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
