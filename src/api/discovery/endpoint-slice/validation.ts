/** Rules for endpoint slices. */
import {
  duplicateField,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  tooMany,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { parseIp } from "../../../std/net/ip.ts";
import { PROTOCOLS } from "../../core/protocols.ts";
import { ipWarnings, validateLegacyIp, validateNonSpecialIp } from "../../meta/validation/ip.ts";
import {
  dns1123Label,
  dns1123Subdomain,
  labelValue,
  qualifiedName,
  validateName,
} from "../../meta/validation/names.ts";
import { validateLabels } from "../../meta/validation/object-meta.ts";
import { repeatedIndexes } from "../../meta/validation/repeated.ts";
import type { Endpoint, EndpointHints, EndpointPort, EndpointSlice } from "./schema.ts";

const ENDPOINTS_MAX = 1000;
const ADDRESSES_MAX = 100;
const PORTS_MAX = 20_000;
const TOPOLOGY_MAX = 16;
const HINTS_MAX = 8;
const ADDRESS_TYPES = ["FQDN", "IPv4", "IPv6"];

export function validateEndpointSlice(slice: EndpointSlice, previous?: EndpointSlice): readonly FieldError[] {
  const { addressType, ports = [] } = slice;
  // Clients may send other values than the schema's.
  const type: string = addressType;
  const storedAddresses = new Set((previous?.endpoints ?? []).flatMap(({ addresses }) => addresses));
  const typeErrors =
    type === ""
      ? [requiredField("addressType")]
      : ADDRESS_TYPES.includes(type)
        ? []
        : [notSupported("addressType", type, ADDRESS_TYPES)];
  return [...typeErrors, ...validatePorts(ports), ...validateEndpoints(slice, storedAddresses)];
}

function validatePorts(ports: readonly EndpointPort[]): readonly FieldError[] {
  if (ports.length > PORTS_MAX) return [tooMany("ports", ports.length, PORTS_MAX)];
  const names = new Set<string>();
  return validateEach(ports, (port, i) => {
    const { name = "", protocol, appProtocol } = port;
    const path = index("ports", i);
    const nameProblems = name === "" ? [] : dns1123Label(name);
    const errors: FieldError[] = nameProblems.map((problem) => invalidField(child(path, "name"), name, problem));
    if (names.has(name)) errors.push(duplicateField(child(path, "name"), name));
    names.add(name);
    if (protocol === undefined) errors.push(requiredField(child(path, "protocol")));
    else if (!PROTOCOLS.includes(protocol)) errors.push(notSupported(child(path, "protocol"), protocol, PROTOCOLS));
    const appProblems = appProtocol === undefined ? [] : qualifiedName(appProtocol);
    errors.push(...appProblems.map((problem) => invalidField(child(path, "appProtocol"), appProtocol, problem)));
    return errors;
  });
}

/** Skips addresses that the stored slice has already. */
function validateEndpoints(slice: EndpointSlice, storedAddresses: ReadonlySet<string>): readonly FieldError[] {
  const { endpoints, addressType } = slice;
  if (endpoints.length > ENDPOINTS_MAX) return [tooMany("endpoints", endpoints.length, ENDPOINTS_MAX)];
  return validateEach(endpoints, (endpoint, i) => {
    const path = index("endpoints", i);
    const at = child(path, "addresses");
    const { length } = endpoint.addresses;
    return [
      ...(length === 0 ? [requiredField(at, "must contain at least 1 address")] : []),
      ...(length > ADDRESSES_MAX ? [tooMany(at, length, ADDRESSES_MAX)] : []),
      ...validateEach(endpoint.addresses, (address, j) =>
        storedAddresses.has(address) ? [] : validateAddress(address, addressType, at, index(at, j)),
      ),
      ...validateEndpoint(endpoint, path),
    ];
  });
}

function validateAddress(address: string, type: string, list: string, path: string): readonly FieldError[] {
  switch (type) {
    case "IPv4":
    case "IPv6": {
      const errors = validateLegacyIp(address, path);
      if (errors.length > 0) return errors;
      const wrong = parseIp(address)?.family !== type;
      return [
        ...(wrong ? [invalidField(list, address, `must be an ${type} address`)] : []),
        ...validateNonSpecialIp(address, path),
      ];
    }
    case "FQDN":
      return validateDomain(address, path);
    default:
      return [];
  }
}

/** A domain name of at least two labels; a trailing dot is allowed. */
function validateDomain(text: string, path: string): readonly FieldError[] {
  if (text === "") return [requiredField(path)];
  const name = text.replace(/\.$/, "");
  const problems = dns1123Subdomain(name);
  if (problems.length > 0) return [invalidField(path, name, problems.join(","))];
  const labels = name.split(".");
  if (labels.length < 2) {
    return [invalidField(path, name, "should be a domain with at least two segments separated by dots")];
  }
  const label = labels.find((each) => dns1123Label(each).length > 0);
  return label === undefined ? [] : [invalidField(path, label, dns1123Label(label).join(","))];
}

function validateEndpoint(endpoint: Endpoint, path: string): readonly FieldError[] {
  const { nodeName, deprecatedTopology = {}, hostname, hints } = endpoint;
  const topology = child(path, "deprecatedTopology");
  const labels = Object.keys(deprecatedTopology).length;
  const nodeProblems = nodeName === undefined ? [] : dns1123Subdomain(nodeName);
  const hostProblems = hostname === undefined ? [] : dns1123Label(hostname);
  return [
    ...nodeProblems.map((problem) => invalidField(child(path, "nodeName"), nodeName, problem)),
    ...(labels > TOPOLOGY_MAX ? [tooMany(topology, labels, TOPOLOGY_MAX)] : []),
    ...validateLabels(deprecatedTopology, topology),
    ...hostProblems.map((problem) => invalidField(child(path, "hostname"), hostname, problem)),
    ...(hints === undefined ? [] : validateHints(hints, child(path, "hints"))),
  ];
}

function validateHints(hints: EndpointHints, path: string): readonly FieldError[] {
  return [...validateZoneHints(hints, path), ...validateNodeHints(hints, path)];
}

function validateNodeHints({ forNodes = [] }: EndpointHints, path: string): readonly FieldError[] {
  const at = child(path, "forNodes");
  if (forNodes.length > HINTS_MAX) return [tooMany(at, forNodes.length, HINTS_MAX)];
  const repeated = repeatedIndexes(forNodes.map(({ name }) => name));
  return validateEach(forNodes, ({ name }, i) => {
    const nameAt = child(index(at, i), "name");
    if (repeated.has(i)) return [duplicateField(nameAt, name)];
    return validateName(nameAt, name, dns1123Subdomain);
  });
}

function validateZoneHints({ forZones = [] }: EndpointHints, path: string): readonly FieldError[] {
  const at = child(path, "forZones");
  if (forZones.length > HINTS_MAX) return [tooMany(at, forZones.length, HINTS_MAX)];
  const repeatedZones = repeatedIndexes(forZones.map(({ name }) => name));
  return validateEach(forZones, ({ name }, i) => {
    const field = child(index(at, i), "name");
    return [
      ...(repeatedZones.has(i) ? [duplicateField(field, name)] : []),
      ...labelValue(name).map((problem) => invalidField(field, name, problem)),
    ];
  });
}

export function endpointSliceWarnings(slice: EndpointSlice, previous: EndpointSlice | undefined): readonly string[] {
  const { addressType, endpoints } = slice;
  const deprecated = addressType === "FQDN" && previous === undefined;
  return [
    ...(deprecated ? ["spec.addressType: FQDN endpoints are deprecated"] : []),
    ...endpoints.flatMap(({ addresses }, i) => {
      const at = child(index("endpoints", i), "addresses");
      return addresses.flatMap((address, j) => ipWarnings(address, index(at, j)));
    }),
  ];
}
