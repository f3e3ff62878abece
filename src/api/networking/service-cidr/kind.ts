import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type ServiceCIDR, serviceCIDR } from "./schema.ts";
import { serviceCIDRStrategy } from "./strategy.ts";

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
  subresources: [statusSubresource("ServiceCIDR", { prepareForUpdate: replaceStatusOnly })],
  storageName: "servicecidrs",
  since: "1.33",
  storageVersion: "v1beta1",
  schema: serviceCIDR,
  columns: [nameColumn, column("CIDRs", ({ spec }) => (spec?.cidrs ?? []).join(",")), ageColumn],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: serviceCIDRStrategy,
};
