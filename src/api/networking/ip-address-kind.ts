import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type IPAddress, ipAddress } from "./ip-address.ts";

export const ipAddressKind: Kind<IPAddress> = {
  group: "networking.svc.io",
  version: "v1",
  kind: "IPAddress",
  listKind: "IPAddressList",
  plural: "ipaddresses",
  singular: "ipaddress",
  shortNames: ["ip"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "ipaddresses",
  schema: ipAddress,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
