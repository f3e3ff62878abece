import type { EndpointSubset, Endpoints } from "./schema.ts";

export function setEndpointsDefaults(object: Endpoints): Endpoints {
  if (object.subsets === undefined) return object;
  return { ...object, subsets: object.subsets.map(setProtocolDefaults) };
}

function setProtocolDefaults(subset: EndpointSubset): EndpointSubset {
  if (subset.ports === undefined) return subset;
  return { ...subset, ports: subset.ports.map((port) => ({ ...port, protocol: port.protocol || "TCP" })) };
}
