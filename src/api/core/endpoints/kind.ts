import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { formatList } from "../../columns/list-text.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type Endpoints, endpoints } from "./schema.ts";
import { endpointsStrategy } from "./strategy.ts";

/** Addresses with ports: `10.0.0.1:80,10.0.0.2:80`; only addresses where there are no ports. */
function endpointsText({ subsets = [] }: Endpoints): string {
  if (subsets.length === 0) return "<none>";
  const all = subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0
      ? addresses.map(({ ip }) => ip)
      : ports.flatMap(({ port }) => addresses.map(({ ip }) => `${ip.includes(":") ? `[${ip}]` : ip}:${port}`)),
  );
  return formatList(all);
}

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
  deprecation: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
  columns: [nameColumn, column("Endpoints", endpointsText), ageColumn],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "metadata", "spec"],
  strategy: endpointsStrategy,
};
