/** What a NetworkPolicy allows, prepared for rules: selectors as requirements, blocks and ports as ranges. */
import { createHash } from "node:crypto";
import type { LabelSelector } from "../api/meta/label-selector.ts";
import { type Requirement, requirementsOf } from "../api/meta/selectors/selector.ts";
import type {
  IPBlock,
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from "../api/networking/network-policy/schema.ts";
import { addressBits, type IpFamily, parseCidr } from "../std/net/ip.ts";

export type Direction = "ingress" | "egress";
export type Protocol = "tcp" | "udp" | "sctp";

export interface CompiledPolicy {
  /** `namespace/name` */
  readonly key: string;
  readonly namespace: string;
  readonly selector: readonly Requirement[];
  /** Undefined: the policy does not isolate pods in this direction. */
  readonly ingress: readonly CompiledRule[] | undefined;
  readonly egress: readonly CompiledRule[] | undefined;
}

export interface CompiledRule {
  /** Undefined: every peer. */
  readonly peers: CompiledPeers | undefined;
  /** Undefined: every port of every protocol. */
  readonly ports: CompiledPorts | undefined;
}

export interface CompiledPeers {
  /** The pods that one of the selectors selects; undefined without selectors. */
  readonly group: PeerGroup | undefined;
  readonly blocks: Readonly<Record<IpFamily, readonly AddressRange[]>>;
}

/** Equal groups of different policies have the same name. */
export interface PeerGroup {
  readonly name: string;
  readonly selectors: readonly PeerSelector[];
}

export interface PeerSelector {
  /** The name of a namespace, or what its labels must satisfy. */
  readonly namespace: string | readonly Requirement[];
  readonly pods: readonly Requirement[];
}

/** Both ends are included. */
export interface AddressRange {
  readonly first: bigint;
  readonly last: bigint;
}

export interface CompiledPorts {
  /** Protocols with all ports. */
  readonly protocols: readonly Protocol[];
  /** `80`, `8000-8999` */
  readonly ranges: Readonly<Record<Protocol, readonly string[]>>;
  readonly named: readonly NamedPort[];
}

/** Equal ports of different policies have the same set name. */
export interface NamedPort {
  readonly set: string;
  readonly protocol: Protocol;
  readonly port: string;
}

export function compilePolicy({ metadata, spec }: NetworkPolicy): CompiledPolicy {
  const { namespace = "", name = "" } = metadata ?? {};
  const { podSelector = {}, ingress = [], egress = [] } = spec ?? {};
  const types = spec?.policyTypes ?? [];
  const hasEgress = types.length > 0 ? types.includes("Egress") : egress.length > 0;
  const hasIngress = types.length === 0 || types.includes("Ingress");
  return {
    key: `${namespace}/${name}`,
    namespace,
    selector: requirementsOf(podSelector),
    ingress: hasIngress ? ingress.map(({ from, ports }) => compileRule(namespace, from, ports)) : undefined,
    egress: hasEgress ? egress.map(({ to, ports }) => compileRule(namespace, to, ports)) : undefined,
  };
}

function compileRule(
  namespace: string,
  peers: readonly NetworkPolicyPeer[] = [],
  ports: readonly NetworkPolicyPort[] = [],
): CompiledRule {
  return {
    peers: peers.length === 0 ? undefined : compilePeers(namespace, peers),
    ports: ports.length === 0 ? undefined : compilePorts(ports),
  };
}

function compilePeers(namespace: string, peers: readonly NetworkPolicyPeer[]): CompiledPeers {
  const selectors = peers.flatMap(({ podSelector, namespaceSelector }): PeerSelector | readonly PeerSelector[] => {
    if (podSelector === undefined && namespaceSelector === undefined) return [];
    return {
      namespace: namespaceSelector === undefined ? namespace : sortedRequirements(namespaceSelector),
      pods: sortedRequirements(podSelector ?? {}),
    };
  });
  const blocks = peers.flatMap(({ ipBlock }) => ipBlock ?? []);
  return {
    group: selectors.length === 0 ? undefined : { name: `peers-${hash(selectors)}`, selectors },
    blocks: { IPv4: toRanges(blocks, "IPv4"), IPv6: toRanges(blocks, "IPv6") },
  };
}

/** In the order of their text, so that equal selectors have equal names. */
function sortedRequirements(selector: LabelSelector): readonly Requirement[] {
  return requirementsOf(selector)
    .map((requirement) => ({ text: JSON.stringify(requirement), requirement }))
    .sort((a, b) => (a.text < b.text ? -1 : 1))
    .map(({ requirement }) => requirement);
}

/** The addresses of all blocks without their exceptions, in disjoint ranges: a set of nftables may not overlap. */
function toRanges(blocks: readonly IPBlock[], family: IpFamily): readonly AddressRange[] {
  return mergeRanges(
    blocks.flatMap(({ cidr, except = [] }) => {
      const [range] = toRange(cidr, family);
      if (range === undefined) return [];
      const holes = mergeRanges(except.flatMap((text) => toRange(text, family)));
      return subtractRanges(range, holes);
    }),
  );
}

/** Empty for text of another family, and for what is no block. */
function toRange(text: string, family: IpFamily): readonly AddressRange[] {
  const cidr = parseCidr(text);
  if (cidr?.family !== family) return [];
  const size = 1n << BigInt(addressBits(family) - cidr.prefixLength);
  return [{ first: cidr.network, last: cidr.network + size - 1n }];
}

function mergeRanges(ranges: readonly AddressRange[]): readonly AddressRange[] {
  const merged: AddressRange[] = [];
  for (const range of ranges.toSorted((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const last = merged.at(-1);
    if (last === undefined || range.first > last.last + 1n) merged.push(range);
    else if (range.last > last.last) merged[merged.length - 1] = { first: last.first, last: range.last };
  }
  return merged;
}

/** The holes are disjoint and in order. */
function subtractRanges({ first, last }: AddressRange, holes: readonly AddressRange[]): readonly AddressRange[] {
  const left: AddressRange[] = [];
  let from = first;
  for (const hole of holes) {
    if (hole.last < from) continue;
    if (hole.first > last) break;
    if (hole.first > from) left.push({ first: from, last: hole.first - 1n });
    from = hole.last + 1n;
  }
  return from > last ? left : [...left, { first: from, last }];
}

const PROTOCOLS = ["tcp", "udp", "sctp"] as const;

function compilePorts(ports: readonly NetworkPolicyPort[]): CompiledPorts {
  const ofProtocol = (protocol: Protocol): readonly NetworkPolicyPort[] =>
    ports.filter((port) => toProtocol(port.protocol) === protocol);
  const protocols = PROTOCOLS.filter((protocol) => ofProtocol(protocol).some(({ port }) => port === undefined));
  const rangesOf = (protocol: Protocol): readonly string[] =>
    protocols.includes(protocol) ? [] : toPortRanges(ofProtocol(protocol));
  const named = PROTOCOLS.filter((protocol) => !protocols.includes(protocol)).flatMap((protocol) => {
    const names = new Set(ofProtocol(protocol).flatMap(({ port }) => (typeof port === "string" ? port : [])));
    return [...names].map((port): NamedPort => ({ set: `ports-${hash([protocol, port])}`, protocol, port }));
  });
  return { protocols, ranges: { tcp: rangesOf("tcp"), udp: rangesOf("udp"), sctp: rangesOf("sctp") }, named };
}

function toPortRanges(ports: readonly NetworkPolicyPort[]): readonly string[] {
  const ranges = ports.flatMap(({ port, endPort }) =>
    typeof port === "number" ? { first: BigInt(port), last: BigInt(endPort ?? port) } : [],
  );
  return mergeRanges(ranges).map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`));
}

export function toProtocol(protocol: string | undefined): Protocol {
  switch (protocol) {
    case "UDP":
      return "udp";
    case "SCTP":
      return "sctp";
    default:
      return "tcp";
  }
}

/** For names of sets and chains. */
export function hash(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);
}
