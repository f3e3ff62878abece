import type { EndpointSlice } from "./schema.ts";

export function setEndpointSliceDefaults(object: EndpointSlice): EndpointSlice {
  if (object.ports === undefined) return object;
  const ports = object.ports.map((port) => ({ ...port, name: port.name ?? "", protocol: port.protocol ?? "TCP" }));
  return { ...object, ports };
}
