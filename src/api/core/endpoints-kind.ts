import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type Endpoints, endpoints } from "./endpoints.ts";

export const endpointsKind: Kind<Endpoints> = {
  group: "",
  version: "v1",
  kind: "Endpoints",
  listKind: "EndpointsList",
  plural: "endpoints",
  singular: "endpoints",
  shortNames: ["ep"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "services/endpoints",
  schema: endpoints,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
