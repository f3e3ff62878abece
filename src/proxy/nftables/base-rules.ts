/**
 * The table of the proxy, without services. A packet to a service passes one verdict map, whatever their number:
 *
 *     services: address . protocol . port → goto choose-3
 *     choose-3: a random number of three  → goto pick-1
 *     pick-1:   endpoints-1: address . protocol . port → address and port of the endpoint
 *
 * So the change of an endpoint changes elements of maps, and no rules.
 */
import type { IpFamily } from "../../std/net/ip.ts";
import { nftFamily, removeTable } from "../../std/nftables/table.ts";

export interface TableOptions {
  readonly family: IpFamily;
  readonly table: string;
  /** Ranges of the pods' addresses: packets from elsewhere to cluster IPs get the node's address as source. */
  readonly clusterCidrs: readonly string[];
  /** Packets to addresses in them that no service has are refused. */
  readonly serviceCidrs: readonly string[];
}

/** The bit of the packet mark, as kube-proxy's: set and cleared within the path of one packet. */
const MASQUERADE_MARK = "0x4000";

/** Text that replaces the table by one without services. */
export function baseRules({ family, table, clusterCidrs, serviceCidrs }: TableOptions): string {
  const ip = nftFamily(family);
  const address = family === "IPv4" ? "ipv4_addr" : "ipv6_addr";
  const frontend = `type ${address} . inet_proto . inet_service`;
  const destination = `${ip} daddr . meta l4proto . th dport`;
  const notFromPods = clusterCidrs.length === 0 ? undefined : `${ip} saddr != @cluster-cidrs`;
  return `${removeTable({ family, table })}table ${ip} ${table} {
 map services { ${frontend} : verdict; }
 map internal { ${frontend} : verdict; }
 map refused { ${frontend} : verdict; }
 map restricted { ${frontend} : verdict; }
 set cluster-ips { type ${address}; }
 set cluster-cidrs { type ${address}; flags interval; auto-merge; ${elements(clusterCidrs)}}
 set service-cidrs { type ${address}; flags interval; auto-merge; ${elements(serviceCidrs)}}
 set hairpins { type ${address} . ${address}; }
 chain mark-masquerade {
  meta mark set meta mark or ${MASQUERADE_MARK}
 }
 chain translate-source {
  meta mark set meta mark xor ${MASQUERADE_MARK}
  masquerade fully-random
 }
 chain short-circuit {
  ${ip} saddr @cluster-cidrs ${destination} vmap @internal
  fib saddr type local jump mark-masquerade
  fib saddr type local ${destination} vmap @internal
 }
 chain services {
  ${notFromPods === undefined ? "" : `${ip} daddr @cluster-ips ${notFromPods} jump mark-masquerade`}
  ${destination} vmap @services
 }
 chain refuse {
  reject
 }
 chain discard {
  drop
 }
 chain check-destination {
  ${destination} vmap @refused
  fib daddr type local accept
  ${ip} daddr @cluster-ips reject
  ${ip} daddr @service-cidrs reject
 }
 chain check-source {
  ${destination} vmap @restricted
 }
 chain nat-prerouting {
  type nat hook prerouting priority dstnat; policy accept;
  jump services
 }
 chain nat-output {
  type nat hook output priority -100; policy accept;
  jump services
 }
 chain nat-postrouting {
  type nat hook postrouting priority srcnat; policy accept;
  meta mark and ${MASQUERADE_MARK} == ${MASQUERADE_MARK} goto translate-source
  ct status dnat ${ip} saddr . ${ip} daddr @hairpins masquerade fully-random
 }
 chain filter-prerouting {
  type filter hook prerouting priority -110; policy accept;
  ct state new jump check-source
 }
 chain filter-input {
  type filter hook input priority -110; policy accept;
  ct state new jump check-destination
 }
 chain filter-forward {
  type filter hook forward priority -110; policy accept;
  ct state new jump check-destination
 }
 chain filter-output {
  type filter hook output priority -110; policy accept;
  ct state new jump check-source
 }
 chain filter-translated-output {
  type filter hook output priority -90; policy accept;
  ct state new jump check-destination
 }
}
`;
}

function elements(ranges: readonly string[]): string {
  return ranges.length === 0 ? "" : `elements = { ${ranges.join(", ")} } `;
}

/** A map of the endpoints with the index, and the chain that translates packets to them. */
export function endpointMap({ family, table }: TableOptions, kind: EndpointKind, index: number): string {
  const ip = nftFamily(family);
  const address = family === "IPv4" ? "ipv4_addr" : "ipv6_addr";
  const map = endpointMapName(kind, index);
  return (
    `add map ${ip} ${table} ${map} { type ${address} . inet_proto . inet_service : ${address} . inet_service; }\n` +
    `add chain ${ip} ${table} ${pickChain(kind, index)}\n` +
    `add rule ${ip} ${table} ${pickChain(kind, index)} meta l4proto { tcp, udp, sctp } ` +
    `dnat ${ip} to ${ip} daddr . meta l4proto . th dport map @${map}\n`
  );
}

/** Which endpoints: those for packets from everywhere, or those of this node for packets from outside. */
export type EndpointKind = "cluster" | "local";

export function endpointMapName(kind: EndpointKind, index: number): string {
  return kind === "cluster" ? `endpoints-${index}` : `local-endpoints-${index}`;
}

function pickChain(kind: EndpointKind, index: number): string {
  return kind === "cluster" ? `pick-${index}` : `pick-local-${index}`;
}

export function chooseChain(kind: EndpointKind, count: number): string {
  return kind === "cluster" ? `choose-${count}` : `choose-local-${count}`;
}

export function masqueradeChain(count: number): string {
  return `masquerade-choose-${count}`;
}

/** The chains that choose one of so many endpoints. */
export function chooseChains({ family, table }: TableOptions, kind: EndpointKind, count: number): string {
  const prefix = `${nftFamily(family)} ${table}`;
  const name = chooseChain(kind, count);
  const verdicts = Array.from({ length: count }, (_, index) => `${index} : goto ${pickChain(kind, index)}`);
  const choose =
    count === 0 ? "" : `add rule ${prefix} ${name} numgen random mod ${count} vmap { ${verdicts.join(", ")} }\n`;
  if (kind === "local") return `add chain ${prefix} ${name}\nadd rule ${prefix} ${name} jump short-circuit\n${choose}`;
  return (
    `add chain ${prefix} ${name}\n${choose}add chain ${prefix} ${masqueradeChain(count)}\n` +
    `add rule ${prefix} ${masqueradeChain(count)} jump mark-masquerade\n` +
    `add rule ${prefix} ${masqueradeChain(count)} goto ${name}\n`
  );
}
