import { column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { ipProblems } from "../../meta/validation/ip.ts";
import { type IPAddress, ipAddress, type ParentReference } from "./schema.ts";
import { ipAddressStrategy } from "./strategy.ts";

/** The parent as `services.default/web`, without absent parts. */
function parentText({ group, resource = "", namespace, name = "" }: ParentReference): string {
  const type = group ? `${resource}.${group}` : resource;
  return [type, namespace, name].filter((part) => part).join("/");
}

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
  since: "1.33",
  storageVersion: "v1beta1",
  schema: ipAddress,
  nameFormat: ipProblems,
  columns: [
    nameColumn,
    column("ParentRef", ({ spec }) => (spec?.parentRef === undefined ? "<none>" : parentText(spec.parentRef))),
  ],
  selectableFields: {},
  strategy: ipAddressStrategy,
};
