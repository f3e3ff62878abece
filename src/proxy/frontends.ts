/** The addresses and ports of services, with what happens to packets that go there. */

import type { Service, ServicePort } from "../api/core/service/schema.ts";
import { runSteps, type Steps } from "../std/async/steps.ts";
import { contains, type IpFamily, parseCidr, parseIp } from "../std/net/ip.ts";
import { chooseEndpoints, type EndpointChoice, type NodeView, type ProxySlice } from "./endpoints.ts";

/** Packets to an address, protocol and port. */
export interface Frontend {
  readonly address: string;
  readonly protocol: "tcp" | "udp" | "sctp";
  readonly port: number;
  readonly action: FrontendAction;
  /** Packets from other sources are dropped; undefined: all are allowed. */
  readonly sourceRanges?: readonly string[] | undefined;
}

export type FrontendAction =
  /** Refused: there are no endpoints. */
  | { readonly type: "reject" }
  /** Dropped: there are endpoints on other nodes only. */
  | { readonly type: "drop" }
  | {
      readonly type: "forward";
      readonly endpoints: readonly string[];
      /** Whether endpoints get the node's address as source. */
      readonly masquerade: boolean;
      readonly affinity?: Affinity | undefined;
    }
  /** To endpoints of this node, except packets of pods and of the node itself, which may go to all. */
  | {
      readonly type: "forwardLocally";
      readonly local: readonly string[];
      readonly cluster: readonly string[];
      readonly affinity?: Affinity | undefined;
    };

export interface Affinity {
  /** Identifies the port of the service: its frontends share the assignment of clients to endpoints. */
  readonly id: string;
  readonly seconds: number;
}

export interface ServiceFrontends {
  readonly frontends: readonly Frontend[];
  /** Addresses of the service alone: packets to other ports of them are refused. */
  readonly clusterIps: readonly string[];
  /** Addresses of endpoints on this node: their packets to themselves need another source. */
  readonly localAddresses: readonly string[];
  readonly withoutLocal: PortsWithoutLocal;
}

/** How many ports have the traffic policy Local and endpoints on other nodes only. */
export interface PortsWithoutLocal {
  readonly internal: number;
  readonly external: number;
}

export interface NodeContext extends NodeView {
  /** The addresses at which the node serves node ports. */
  readonly addresses: readonly string[];
}

const AFFINITY_SECONDS = 10_800;
/** Ports of a service times endpoints. */
const PORT_ENDPOINTS_MAX = 25_000;
/** Addresses of load balancers of a service, each of which is compared with all source ranges. */
const INGRESS_MAX = 100;

/** Whether the proxy handles the service at all. */
export function isProxied({ metadata, spec }: Service): boolean {
  const { clusterIP = "" } = spec ?? {};
  return (
    spec?.type !== "ExternalName" &&
    clusterIP !== "" &&
    clusterIP !== "None" &&
    metadata?.labels?.["service.kubernetes.io/service-proxy-name"] === undefined
  );
}

export function computeFrontends(
  service: Service,
  slices: readonly ProxySlice[],
  family: IpFamily,
  node: NodeContext,
): ServiceFrontends {
  return runSteps(computeFrontendsInSteps(service, slices, family, node));
}

export function* computeFrontendsInSteps(
  service: Service,
  slices: readonly ProxySlice[],
  family: IpFamily,
  node: NodeContext,
): Steps<ServiceFrontends> {
  const clusterIps = (service.spec?.clusterIPs ?? [service.spec?.clusterIP ?? ""]).filter((ip) => isOf(ip, family));
  const withoutLocal = { internal: 0, external: 0 };
  if (!isProxied(service) || clusterIps.length === 0) {
    return { frontends: [], clusterIps: [], localAddresses: [], withoutLocal };
  }
  const local = new Set<string>();
  const ports = service.spec?.ports ?? [];
  yield;
  const byPort = groupByPort(limitEndpoints(ofFamily(slices, family), endpointsMax(service)));
  const addresses = { clusterIps, ...findAddresses(service, family, node) };
  const frontends: Frontend[] = [];
  for (const port of ports) {
    yield;
    const { name = "", protocol = "TCP" } = port;
    const choice = chooseEndpoints(byPort.get(portKey(name, protocol)) ?? [], family, { name, protocol }, node);
    for (const endpoint of choice.local) local.add(endpoint.slice(0, endpoint.indexOf(" ")));
    if (choice.exists && choice.local.length === 0) {
      if (service.spec?.internalTrafficPolicy === "Local") withoutLocal.internal++;
      if (service.spec?.externalTrafficPolicy === "Local") withoutLocal.external++;
    }
    frontends.push(...portFrontends(service, port, choice, addresses));
  }
  return { frontends, clusterIps, localAddresses: [...local], withoutLocal };
}

/** How many endpoints the proxy uses of a service: ports and endpoints multiply in the rules of the kernel. */
export function endpointsMax({ spec }: Service): number {
  return Math.max(1, Math.floor(PORT_ENDPOINTS_MAX / (spec?.ports?.length || 1)));
}

/** External IPs and addresses of load balancers that the proxy does not use. */
export function countUnusedAddresses(service: Service, family: IpFamily): number {
  const { externalIps, ingress } = externalAddresses(service, family);
  return Math.max(0, externalIps.length - endpointsMax(service)) + Math.max(0, ingress.length - INGRESS_MAX);
}

export function countEndpoints(slices: readonly ProxySlice[], family: IpFamily): number {
  return ofFamily(slices, family).reduce((sum, { endpoints }) => sum + endpoints.length, 0);
}

function ofFamily(slices: readonly ProxySlice[], family: IpFamily): readonly ProxySlice[] {
  return slices.filter((slice) => slice.family === family);
}

/** Keeps endpoints that are ready, then the first ones. */
function limitEndpoints(slices: readonly ProxySlice[], count: number): readonly ProxySlice[] {
  const all = slices.flatMap(({ endpoints }) => endpoints);
  if (all.length <= count) return slices;
  const sorted = all.sort((a, b) => Number(b.ready) - Number(a.ready) || (a.address < b.address ? -1 : 1));
  const kept = new Set(sorted.slice(0, count));
  return slices
    .map((slice) => ({ ...slice, endpoints: slice.endpoints.filter((endpoint) => kept.has(endpoint)) }))
    .filter(({ endpoints }) => endpoints.length > 0);
}

/** The slices that have a port, each with this port only. */
function groupByPort(slices: readonly ProxySlice[]): ReadonlyMap<string, readonly ProxySlice[]> {
  const groups = new Map<string, ProxySlice[]>();
  for (const slice of slices) {
    for (const port of slice.ports) {
      const key = portKey(port.name, port.protocol);
      const group = groups.get(key) ?? [];
      groups.set(key, group);
      group.push({ ...slice, ports: [port] });
    }
  }
  return groups;
}

function portKey(name: string, protocol: string): string {
  return `${protocol} ${name}`;
}

function isOf(address: string, family: IpFamily): boolean {
  return address !== "" && (address.includes(":") ? "IPv6" : "IPv4") === family;
}

function portFrontends(
  service: Service,
  servicePort: ServicePort,
  choice: EndpointChoice,
  { clusterIps, externalIps, ingress, ofNode, sourceRanges }: ServiceAddresses,
): readonly Frontend[] {
  const { spec = {} } = service;
  const { port, nodePort = 0, protocol = "TCP" } = servicePort;
  const proto = protocol.toLowerCase() as Frontend["protocol"];
  const affinity = affinityOf(service, servicePort);
  const internal = internalAction(spec.internalTrafficPolicy === "Local", choice, affinity);
  const external = externalAction(spec.externalTrafficPolicy === "Local", choice, affinity);
  const at = (address: string, number: number, action: FrontendAction): Frontend => ({
    address,
    protocol: proto,
    port: number,
    action,
  });
  return [
    ...clusterIps.map((ip) => at(ip, port, internal)),
    ...externalIps.map((ip) => at(ip, port, external)),
    ...ingress.map((ip) => ({ ...at(ip, port, external), sourceRanges })),
    ...(nodePort === 0 ? [] : ofNode.map((ip) => at(ip, nodePort, external))),
  ];
}

/** Where all ports of a service are served. */
interface ServiceAddresses {
  readonly clusterIps: readonly string[];
  readonly externalIps: readonly string[];
  readonly ingress: readonly string[];
  /** For node ports. */
  readonly ofNode: readonly string[];
  /** Of the addresses in `ingress`. */
  readonly sourceRanges: readonly string[] | undefined;
}

function externalAddresses({ spec, status }: Service, family: IpFamily) {
  const ingress = (status?.loadBalancer?.ingress ?? []).flatMap(({ ip = "", ipMode = "VIP" }) =>
    ipMode === "VIP" && isOf(ip, family) ? [ip] : [],
  );
  return { ingress, externalIps: (spec?.externalIPs ?? []).filter((ip) => isOf(ip, family)) };
}

/** The first ones: ports and addresses multiply, as ports and endpoints do. */
function findAddresses(service: Service, family: IpFamily, node: NodeContext): Omit<ServiceAddresses, "clusterIps"> {
  const all = externalAddresses(service, family);
  const ingress = all.ingress.slice(0, INGRESS_MAX);
  return {
    ingress,
    externalIps: all.externalIps.slice(0, endpointsMax(service)),
    ofNode: node.addresses.filter((ip) => isOf(ip, family)),
    sourceRanges: rangesOf(service.spec?.loadBalancerSourceRanges ?? [], ingress, node.addresses, family),
  };
}

function affinityOf({ metadata, spec }: Service, { name = "" }: ServicePort): Affinity | undefined {
  if (spec?.sessionAffinity !== "ClientIP") return undefined;
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? AFFINITY_SECONDS;
  return { id: `${metadata?.namespace}/${metadata?.name}:${name}`, seconds };
}

function internalAction(
  isLocal: boolean,
  { cluster, local, exists }: EndpointChoice,
  affinity: Affinity | undefined,
): FrontendAction {
  const endpoints = isLocal ? local : cluster;
  if (endpoints.length > 0) return { type: "forward", endpoints, masquerade: false, affinity };
  return { type: exists ? "drop" : "reject" };
}

function externalAction(
  isLocal: boolean,
  { cluster, local, exists }: EndpointChoice,
  affinity: Affinity | undefined,
): FrontendAction {
  if (!exists) return { type: "reject" };
  if (isLocal) return { type: "forwardLocally", local, cluster, affinity };
  return { type: "forward", endpoints: cluster, masquerade: true, affinity };
}

/**
 * Undefined if every source is allowed. If the node is, so are the addresses of the load balancer: they are sources of
 * the node's own packets to them.
 */
function rangesOf(
  ranges: readonly string[],
  own: readonly string[],
  ofNode: readonly string[],
  family: IpFamily,
): readonly string[] | undefined {
  const texts = ranges.map((text) => text.trim()).filter((text) => parseCidr(text)?.family === family);
  const parsed = texts.map((text) => parseCidr(text)!);
  // As in Kubernetes, ranges of the other family restrict nothing.
  if (parsed.length === 0 || parsed.some(({ prefixLength }) => prefixLength === 0)) return undefined;
  const isAllowed = (text: string): boolean => {
    const ip = parseIp(text);
    return ip !== undefined && parsed.some((range) => contains(range, ip));
  };
  const outside = ofNode.some(isAllowed) ? own.filter((ip) => !isAllowed(ip)) : [];
  return [...texts, ...outside];
}
