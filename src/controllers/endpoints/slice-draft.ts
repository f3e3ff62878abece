/** EndpointSlices while a sync computes them. */
import type { Endpoint, EndpointPort, EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";

export type AddressType = "IPv4" | "IPv6";

/** Endpoints are replaced, never changed: they may belong to the informer. */
export interface SliceDraft {
  /** Everything but the endpoints. Without a name it is to be created. */
  readonly slice: EndpointSlice;
  readonly endpoints: Endpoint[];
}

/** The slices of one address type. `unchanged` moves to `update` when the hints of a slice change. */
export interface SliceDrafts {
  readonly create: SliceDraft[];
  readonly update: SliceDraft[];
  unchanged: readonly EndpointSlice[];
}

export function draftOf(slice: EndpointSlice): SliceDraft {
  return { slice, endpoints: [...slice.endpoints] };
}

export function finishDraft({ slice, endpoints }: SliceDraft): EndpointSlice {
  return { ...slice, endpoints };
}

/**
 * Identifies the ports of a group of slices. Kubernetes does not find a stored slice without ports again, whose list
 * is null, when it looks for an empty list: it writes such a slice in every sync.
 */
export function portsKey(ports: readonly EndpointPort[] | undefined, isStored: boolean): string {
  if (isStored && (ports ?? []).length === 0) return "null";
  return JSON.stringify(
    (ports ?? []).map(({ name, protocol, port, appProtocol }) => [name, protocol, port, appProtocol]),
  );
}

/** Endpoints with equal keys are versions of the same endpoint. */
export function endpointKey({ addresses, hostname = "", targetRef }: Endpoint): string {
  return JSON.stringify([addresses, hostname, targetRef?.namespace ?? "", targetRef?.name ?? ""]);
}

/** Compares what the key does not include, except hints. */
export function isSameEndpoint(a: Endpoint, b: Endpoint): boolean {
  const valuesOf = ({ nodeName, zone, conditions, targetRef }: Endpoint) => [
    nodeName,
    zone,
    conditions?.ready,
    conditions?.serving,
    conditions?.terminating,
    targetRef?.kind,
    targetRef?.uid,
    targetRef?.apiVersion,
    targetRef?.fieldPath,
  ];
  const other = valuesOf(b);
  return valuesOf(a).every((value, index) => value === other[index]);
}
