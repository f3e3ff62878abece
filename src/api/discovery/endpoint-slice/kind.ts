import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { formatList } from "../../columns/list-text.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type EndpointSlice, endpointSlice } from "./schema.ts";
import { endpointSliceStrategy } from "./strategy.ts";

/** A port without a number stands for all ports, unless it has a name. */
function portsText({ ports = [] }: EndpointSlice): string {
  return formatList(ports.map(({ port, name }) => (port === undefined ? (name ?? "*") : String(port)))) || "<unset>";
}

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
  columns: [
    nameColumn,
    column("AddressType", ({ addressType }) => addressType),
    column("Ports", portsText),
    column("Endpoints", ({ endpoints }) => formatList(endpoints.flatMap(({ addresses }) => addresses)) || "<unset>"),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy: endpointSliceStrategy,
};
