import {
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { ipWarnings, validateLegacyIp, validateNonSpecialIp } from "../../meta/validation/ip.ts";
import { dns1123Label, dns1123Subdomain, portNumber, qualifiedName } from "../../meta/validation/names.ts";
import { PROTOCOLS } from "../protocols.ts";
import type { EndpointAddress, EndpointPort, EndpointSubset, Endpoints } from "./schema.ts";

export function validateEndpoints({ subsets = [] }: Endpoints): readonly FieldError[] {
  return validateEach(subsets, (subset, i) => validateSubset(subset, index("subsets", i)));
}

/** The ready and the not ready addresses, each with its path. */
function addressesOf(subset: EndpointSubset, path: string): readonly (readonly [EndpointAddress, string])[] {
  return (["addresses", "notReadyAddresses"] as const).flatMap((field) =>
    (subset[field] ?? []).map((address, i) => [address, index(child(path, field), i)] as const),
  );
}

function validateSubset(subset: EndpointSubset, path: string): readonly FieldError[] {
  const addresses = addressesOf(subset, path);
  // Endpoints of headless services may have no ports.
  const ports = subset.ports ?? [];
  return [
    ...(addresses.length === 0 ? [requiredField(path, "must specify `addresses` or `notReadyAddresses`")] : []),
    ...validateEach(addresses, ([address, at]) => validateAddress(address, at)),
    ...validateEach(ports, (port, i) => validatePort(port, ports.length > 1, index(child(path, "ports"), i))),
  ];
}

function validateAddress({ ip, hostname = "", nodeName }: EndpointAddress, path: string): readonly FieldError[] {
  const labelProblems = hostname === "" ? [] : dns1123Label(hostname);
  const nodeProblems = nodeName === undefined ? [] : dns1123Subdomain(nodeName);
  return [
    ...validateLegacyIp(ip, child(path, "ip")),
    ...labelProblems.map((problem) => invalidField(child(path, "hostname"), hostname, problem)),
    ...nodeProblems.map((problem) => invalidField(child(path, "nodeName"), nodeName, problem)),
    ...validateNonSpecialIp(ip, child(path, "ip")),
  ];
}

function validatePort(port: EndpointPort, needsName: boolean, path: string): readonly FieldError[] {
  const { name = "", protocol = "", appProtocol } = port;
  const at = child(path, "name");
  const nameProblems = name === "" ? [] : dns1123Label(name);
  const appProblems = appProtocol === undefined ? [] : qualifiedName(appProtocol);
  return [
    ...(needsName && name === "" ? [requiredField(at)] : []),
    ...nameProblems.map((problem) => invalidField(at, name, problem)),
    ...portNumber(port.port).map((problem) => invalidField(child(path, "port"), port.port, problem)),
    ...validateProtocol(protocol, child(path, "protocol")),
    ...appProblems.map((problem) => invalidField(child(path, "appProtocol"), appProtocol, problem)),
  ];
}

function validateProtocol(protocol: string, path: string): readonly FieldError[] {
  if (protocol === "") return [requiredField(path)];
  return PROTOCOLS.includes(protocol) ? [] : [notSupported(path, protocol, PROTOCOLS)];
}

export function endpointsWarnings({ subsets = [] }: Endpoints): readonly string[] {
  return subsets.flatMap((subset, i) =>
    addressesOf(subset, index("subsets", i)).flatMap(([{ ip }, at]) => ipWarnings(ip, child(at, "ip"))),
  );
}
