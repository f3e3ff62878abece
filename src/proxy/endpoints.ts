/** What the proxy keeps of an EndpointSlice. */
import type { EndpointSlice } from "../api/discovery/endpoint-slice/schema.ts";
import type { IpFamily } from "../std/net/ip.ts";

export interface ProxyEndpoint {
  readonly address: string;
  readonly nodeName: string | undefined;
  /** The zones that should use it; undefined without hints. */
  readonly zones: readonly string[] | undefined;
  /** The nodes that should use it; undefined without hints. */
  readonly nodes?: readonly string[] | undefined;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
}

export interface ProxyPort {
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
}

export interface ProxySlice {
  /** `namespace/name` of the service. */
  readonly service: string;
  readonly family: IpFamily;
  readonly ports: readonly ProxyPort[];
  readonly endpoints: readonly ProxyEndpoint[];
}

const SERVICE_NAME = "kubernetes.io/service-name";
const PORT_MAX = 0xffff;

/** Undefined for slices that are no service's, or that hold names instead of addresses. */
export function readSlice({ metadata, addressType, ports, endpoints }: EndpointSlice): ProxySlice | undefined {
  const name = metadata?.labels?.[SERVICE_NAME] ?? "";
  if (name === "" || (addressType !== "IPv4" && addressType !== "IPv6")) return undefined;
  return {
    service: `${metadata?.namespace ?? ""}/${name}`,
    family: addressType,
    ports: (ports ?? []).flatMap(({ name: portName = "", protocol = "TCP", port }) =>
      // Kubernetes validates no range, and nft rejects the rules of all services with one that is not in it.
      port === undefined || port < 0 || port > PORT_MAX ? [] : [{ name: portName, protocol, port }],
    ),
    endpoints: (endpoints ?? []).flatMap(({ addresses, conditions, nodeName, hints }) => {
      const [address] = addresses;
      if (address === undefined) return [];
      const ready = conditions?.ready ?? true;
      const zones = hints?.forZones?.map(({ name: zone }) => zone);
      const nodes = hints?.forNodes?.map(({ name: node }) => node);
      // As kube-proxy: whether the endpoint is ready says nothing of this.
      const serving = conditions?.serving ?? true;
      return [
        {
          address,
          nodeName,
          zones,
          ...(nodes && { nodes }),
          ready,
          serving,
          terminating: conditions?.terminating ?? false,
        },
      ];
    }),
  };
}

export interface EndpointChoice {
  /** `address . port`, ordered. */
  readonly cluster: readonly string[];
  /** Those on this node. */
  readonly local: readonly string[];
  /** Whether any endpoint could get traffic, on whatever node. */
  readonly exists: boolean;
}

export interface NodeView {
  readonly name: string;
  readonly zone: string | undefined;
}

/**
 * Chooses the endpoints of a service's port as Kubernetes: the ready ones, or those that still serve while they
 * terminate when none is ready; of the ready ones those with a hint for the node or else its zone, if all have hints.
 */
export function chooseEndpoints(
  slices: Iterable<ProxySlice>,
  family: IpFamily,
  { name, protocol }: { readonly name: string; readonly protocol: string },
  node: NodeView,
): EndpointChoice {
  // The last one wins: a pod that moves between slices is in both for a moment.
  const byAddress = new Map<string, ProxyEndpoint>();
  for (const slice of slices) {
    if (slice.family !== family) continue;
    for (const port of slice.ports) {
      if (port.name !== name || port.protocol !== protocol) continue;
      for (const endpoint of slice.endpoints) {
        const key = `${endpoint.address} . ${port.port}`;
        const existing = byAddress.get(key);
        if (existing === undefined || !existing.ready) byAddress.set(key, endpoint);
      }
    }
  }
  const all = [...byAddress].sort(([a], [b]) => (a < b ? -1 : 1));
  const isLocal = ([, { nodeName }]: readonly [string, ProxyEndpoint]): boolean => nodeName === node.name;
  const usable = readyOrServing(all);
  // Hints are for endpoints that are ready.
  const isHinted = usable.some(([, { ready }]) => ready);
  const hinted = isHinted ? (ofNode(usable, node.name) ?? ofZone(usable, node.zone)) : usable;
  return {
    cluster: hinted.map(([key]) => key),
    local: readyOrServing(all.filter(isLocal)).map(([key]) => key),
    exists: usable.length > 0,
  };
}

type Entry = readonly [key: string, endpoint: ProxyEndpoint];

function readyOrServing(entries: readonly Entry[]): readonly Entry[] {
  const ready = entries.filter(([, endpoint]) => endpoint.ready);
  return ready.length > 0 ? ready : entries.filter(([, { serving, terminating }]) => serving && terminating);
}

/** Undefined where the zone decides. */
function ofNode(entries: readonly Entry[], node: string): readonly Entry[] | undefined {
  if (entries.some(([, { nodes }]) => (nodes ?? []).length === 0)) return undefined;
  const hinted = entries.filter(([, { nodes }]) => nodes?.includes(node) === true);
  return hinted.length > 0 ? hinted : undefined;
}

function ofZone(entries: readonly Entry[], zone: string | undefined): readonly Entry[] {
  if (zone === undefined || entries.some(([, { zones }]) => (zones ?? []).length === 0)) return entries;
  const hinted = entries.filter(([, { zones }]) => zones?.includes(zone) === true);
  return hinted.length > 0 ? hinted : entries;
}
