/**
 * What the kernel of a node must have, so that packets to the pods of other nodes arrive:
 *
 *     a node in the same layer-2 network:  route  POD-CIDR via NODE-ADDRESS
 *     another node:                        route  POD-CIDR via POD-NETWORK dev DEVICE
 *                                          neighbour POD-NETWORK at MAC, forwarding entry MAC at NODE-ADDRESS
 *
 * POD-NETWORK is the first address of the node's pod CIDR. DEVICE is a VXLAN device with that address; its MAC follows
 * from the name of the node, so that nodes need not exchange it.
 */
import { createHash } from "node:crypto";
import { type Cidr, contains, formatCidr, formatIp, parseCidr } from "../std/net/ip.ts";

/** What the network needs of a Node object. */
export interface NetworkNode {
  readonly name: string;
  readonly podCidrs: readonly string[];
  /** Internal addresses. */
  readonly addresses: readonly string[];
}

/** How the node sends packets to an address now. */
export interface NextHop {
  readonly device: string;
  /** Whether packets need no router: the link resolves the address to a MAC. */
  readonly isOnLink: boolean;
  /** Bytes. */
  readonly mtu: number;
}

export interface Route {
  readonly destination: string;
  readonly gateway: string;
  readonly device: string;
}

export interface VxlanDevice {
  readonly mac: string;
  /** The node's address. */
  readonly local: string;
  readonly mtu: number;
  /** `10.244.1.0/32` */
  readonly addresses: readonly string[];
}

export interface NetworkPlan {
  /** Undefined: all other nodes are in the same layer-2 networks. */
  readonly device: VxlanDevice | undefined;
  readonly routes: readonly Route[];
  readonly neighbors: readonly { readonly address: string; readonly mac: string }[];
  readonly forwarding: readonly { readonly mac: string; readonly address: string }[];
  /** Nodes whose pods cannot be reached, and why. */
  readonly problems: readonly string[];
}

export interface PlanOptions {
  /** `vxlan`: also for nodes in the same network, where that drops packets with pods' addresses. */
  readonly mode: "auto" | "vxlan";
  readonly clusterCidrs: readonly string[];
  readonly device: string;
}

/** Bytes that VXLAN adds to a packet: the headers of IP, UDP, VXLAN and Ethernet. */
const OVERHEAD = { IPv4: 50, IPv6: 70 } as const;
/** The MTU of devices for which the kernel reports none. */
const MTU_MIN = 1280;

export function planNetwork(
  own: NetworkNode,
  others: readonly NetworkNode[],
  nextHops: ReadonlyMap<string, NextHop>,
  options: PlanOptions,
): NetworkPlan {
  const problems: string[] = [];
  const routes: Route[] = [];
  const neighbors: NetworkPlan["neighbors"][number][] = [];
  const forwarding: NetworkPlan["forwarding"][number][] = [];
  const ownCidrs = readCidrs(own.podCidrs);
  const ranges = readCidrs(options.clusterCidrs);
  const taken = [...ownCidrs];
  for (const cidr of ownCidrs.filter((each) => !ranges.some((range) => isInside(each, range)))) {
    problems.push(`the pod CIDR ${formatCidr(cidr)} of this node is outside of the cluster's range`);
  }
  const local = own.addresses[0];
  let mtu = Number.POSITIVE_INFINITY;
  for (const node of others.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const remote = node.addresses.find((address) => familyOf(address) === familyOf(local ?? ""));
    if (node.addresses.some((address) => own.addresses.includes(address))) {
      problems.push(`node ${node.name} has the same internal address as this node`);
      continue;
    }
    let isTunneled = false;
    for (const cidr of readCidrs(node.podCidrs)) {
      const destination = formatCidr(cidr);
      if (!ownCidrs.some(({ family }) => family === cidr.family)) continue;
      if (!ranges.some((range) => isInside(cidr, range))) {
        problems.push(`the pod CIDR ${destination} of node ${node.name} is outside of the cluster's range`);
        continue;
      }
      if (taken.some((other) => isInside(cidr, other) || isInside(other, cidr))) {
        problems.push(`the pod CIDR ${destination} of node ${node.name} overlaps that of another node`);
        continue;
      }
      const gateway = node.addresses.find((address) => familyOf(address) === cidr.family);
      const hop = gateway === undefined ? undefined : nextHops.get(gateway);
      if (options.mode === "auto" && gateway !== undefined && hop?.isOnLink === true) {
        taken.push(cidr);
        routes.push({ destination, gateway, device: hop.device });
        continue;
      }
      const underlay = remote === undefined ? undefined : nextHops.get(remote);
      if (local === undefined || remote === undefined || underlay === undefined) {
        problems.push(`node ${node.name} has no internal address that this node has a route to`);
        continue;
      }
      taken.push(cidr);
      const peer = formatIp({ family: cidr.family, value: cidr.network });
      routes.push({ destination, gateway: peer, device: options.device });
      neighbors.push({ address: peer, mac: macOf(node.name) });
      isTunneled = true;
      mtu = Math.min(mtu, Math.max(MTU_MIN, underlay.mtu - OVERHEAD[familyOf(remote)]));
    }
    if (isTunneled && remote !== undefined) forwarding.push({ mac: macOf(node.name), address: remote });
  }
  const device =
    local === undefined || forwarding.length === 0
      ? undefined
      : { mac: macOf(own.name), local, mtu, addresses: ownCidrs.map(networkAddress) };
  return { device, routes, neighbors, forwarding, problems };
}

/** A locally administered unicast address. */
export function macOf(node: string): string {
  const bytes = createHash("sha256").update(`svc-vxlan/${node}`).digest().subarray(0, 6);
  bytes[0] = ((bytes[0] ?? 0) & 0xfc) | 0x02;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}

function networkAddress({ family, network }: Cidr): string {
  return `${formatIp({ family, value: network })}/${family === "IPv4" ? 32 : 128}`;
}

function familyOf(address: string): "IPv4" | "IPv6" {
  return address.includes(":") ? "IPv6" : "IPv4";
}

function readCidrs(texts: readonly string[]): readonly Cidr[] {
  return texts.flatMap((text) => parseCidr(text) ?? []);
}

function isInside(inner: Cidr, outer: Cidr): boolean {
  return inner.prefixLength >= outer.prefixLength && contains(outer, { family: inner.family, value: inner.network });
}
