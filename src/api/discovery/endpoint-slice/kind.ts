import { invalidField } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { formatList } from "../../columns/list-text.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { type Endpoint, type EndpointSlice, endpointSlice } from "./schema.ts";
import { endpointSliceWarnings, validateEndpointSlice } from "./validation.ts";

function setEndpointSliceDefaults(object: EndpointSlice): EndpointSlice {
  if (object.ports === undefined) return object;
  const ports = object.ports.map((port) => ({ ...port, name: port.name ?? "", protocol: port.protocol ?? "TCP" }));
  return { ...object, ports };
}

/** Topology has members of its own since this version; hints for nodes are not served by default yet. */
function dropDeprecatedFields(object: EndpointSlice): EndpointSlice {
  return { ...object, endpoints: object.endpoints.map(dropEndpointFields) };
}

function dropEndpointFields({ deprecatedTopology: _, hints, ...rest }: Endpoint): Endpoint {
  if (hints === undefined) return rest;
  const { forNodes, ...kept } = hints;
  return forNodes !== undefined && (kept.forZones ?? []).length === 0 ? rest : { ...rest, hints: kept };
}

function prepareForUpdate(next: EndpointSlice, previous: EndpointSlice): EndpointSlice {
  const prepared = deepEqual(next.endpoints, previous.endpoints) ? next : dropDeprecatedFields(next);
  const changed =
    !deepEqual({ ...prepared, metadata: undefined }, { ...previous, metadata: undefined }) ||
    !deepEqual(next.metadata?.labels ?? {}, previous.metadata?.labels ?? {});
  return updateGeneration(prepared, previous, changed);
}

const endpointSliceStrategy: Strategy<EndpointSlice> = {
  setDefaults: setEndpointSliceDefaults,
  prepareForCreate: (object) => setFirstGeneration(dropDeprecatedFields(object)),
  prepareForUpdate,
  validate: validateEndpointSlice,
  validateUpdate: ({ addressType }, previous) =>
    addressType === previous.addressType ? [] : [invalidField("addressType", addressType, "field is immutable")],
  warnings: endpointSliceWarnings,
};

/** A port without a number stands for all, or goes by its name. */
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
    column("AddressType", ({ addressType }) => addressType, "What its addresses are."),
    column("Ports", portsText, "Ports that every endpoint has."),
    column(
      "Endpoints",
      ({ endpoints }) => formatList(endpoints.flatMap(({ addresses }) => addresses)) || "<unset>",
      "The first addresses.",
    ),
    ageColumn,
  ],
  selectableFields: {},
  strategy: endpointSliceStrategy,
};
