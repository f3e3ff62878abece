import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type EndpointSlice, endpointSlice } from "./endpoint-slice.ts";

export const endpointSliceKind: Kind<EndpointSlice> = {
  group: "discovery.svc.io",
  version: "v1",
  kind: "EndpointSlice",
  listKind: "EndpointSliceList",
  plural: "endpointslices",
  singular: "endpointslice",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "endpointslices",
  schema: endpointSlice,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
