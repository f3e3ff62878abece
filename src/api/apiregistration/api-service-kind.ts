import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type APIService, apiService } from "./api-service.ts";

export const apiServiceKind: Kind<APIService> = {
  group: "apiregistration.svc.io",
  version: "v1",
  kind: "APIService",
  listKind: "APIServiceList",
  plural: "apiservices",
  singular: "apiservice",
  shortNames: [],
  categories: ["api-extensions"],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("APIService")],
  storageName: "apiregistration.k8s.io/apiservices",
  schema: apiService,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
