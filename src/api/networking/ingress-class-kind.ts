import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type IngressClass, ingressClass } from "./ingress-class.ts";

export const ingressClassKind: Kind<IngressClass> = {
  group: "networking.svc.io",
  version: "v1",
  kind: "IngressClass",
  listKind: "IngressClassList",
  plural: "ingressclasses",
  singular: "ingressclass",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "ingressclasses",
  schema: ingressClass,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
