import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type Ingress, ingress } from "./ingress.ts";

export const ingressKind: Kind<Ingress> = {
  group: "networking.svc.io",
  version: "v1",
  kind: "Ingress",
  listKind: "IngressList",
  plural: "ingresses",
  singular: "ingress",
  shortNames: ["ing"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("Ingress")],
  storageName: "ingress",
  schema: ingress,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
