import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type Service, service } from "./service.ts";

export const serviceKind: Kind<Service> = {
  group: "",
  version: "v1",
  kind: "Service",
  listKind: "ServiceList",
  plural: "services",
  singular: "service",
  shortNames: ["svc"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("Service")],
  storageName: "services/specs",
  schema: service,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
