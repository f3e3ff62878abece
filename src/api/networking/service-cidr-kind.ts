import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type ServiceCIDR, serviceCIDR } from "./service-cidr.ts";

export const serviceCIDRKind: Kind<ServiceCIDR> = {
  group: "networking.svc.io",
  version: "v1",
  kind: "ServiceCIDR",
  listKind: "ServiceCIDRList",
  plural: "servicecidrs",
  singular: "servicecidr",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("ServiceCIDR")],
  storageName: "servicecidrs",
  schema: serviceCIDR,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
