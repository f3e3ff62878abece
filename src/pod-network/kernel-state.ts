/** Reads what the kernel has of the pod network, and how it sends packets to other nodes. */

import type { NetworkNames } from "./network-names.ts";
import type { NextHop, Route, VxlanDevice } from "./network-plan.ts";
import type { RouteTools } from "./programs.ts";

/** The routing protocol of routes of ours, by which they are recognized. */
export const ROUTE_PROTOCOL = 84;
/** Flannel's port, which is the kernel's default too. */
export const VXLAN_PORT = 8472;
export const VXLAN_ID = 84;

export interface KernelState {
  /** Undefined: there is none; `isForeign`: one with other settings, which must be replaced. */
  readonly device: (VxlanDevice & { readonly isUp: boolean; readonly isForeign: boolean }) | undefined;
  readonly routes: readonly Route[];
  readonly neighbors: readonly { readonly address: string; readonly mac: string }[];
  readonly forwarding: readonly { readonly mac: string; readonly address: string }[];
  /** How packets to the addresses leave the node; those without a route are missing. */
  readonly nextHops: ReadonlyMap<string, NextHop>;
}

type Json = Readonly<Record<string, unknown>>;

/** Rejects if a program cannot run. */
export async function readKernelState(
  tools: RouteTools,
  { device, metric }: NetworkNames,
  addresses: readonly string[],
  families: ReadonlySet<string>,
): Promise<KernelState> {
  const four = await tools.ip([
    "address show type vxlan",
    "neigh show nud permanent",
    `route show proto ${ROUTE_PROTOCOL}`,
    ...addresses.map((address) => `route get ${address}`),
  ]);
  const [links = [], neighbors = [], routes = [], ...gets] = parseLines(four.stdout);
  const six = families.has("IPv6") ? await tools.ip([`route show proto ${ROUTE_PROTOCOL}`], "-6") : undefined;
  const hops = new Map(gets.flatMap(([hop]) => (hop === undefined ? [] : [[text(hop.dst), hop] as const])));
  const link = links.find(({ ifname }) => ifname === device);
  const forwarding = link === undefined ? undefined : await tools.bridge([`fdb show dev ${device}`]);
  return {
    device: link === undefined ? undefined : toDevice(link),
    routes: [...routes, ...parseLines(six?.stdout ?? "").flat()]
      .filter((route) => route.metric === metric)
      .map(({ dst, gateway, dev }) => ({ destination: text(dst), gateway: text(gateway), device: text(dev) })),
    neighbors: neighbors
      .filter(({ dev }) => dev === device)
      .map(({ dst, lladdr }) => ({ address: text(dst), mac: text(lladdr) })),
    forwarding: parseLines(forwarding?.stdout ?? "")
      .flat()
      .filter(({ dst, state }) => dst !== undefined && state === "permanent")
      .map(({ mac, dst }) => ({ mac: text(mac), address: text(dst) })),
    nextHops: await readNextHops(tools, hops),
  };
}

async function readNextHops(tools: RouteTools, hops: ReadonlyMap<string, Json>): Promise<KernelState["nextHops"]> {
  const devices = new Set([...hops.values()].map(({ dev }) => text(dev)));
  if (devices.size === 0) return new Map();
  const shown = await tools.ip([...devices].map((name) => `link show dev ${name}`));
  const links = new Map(
    parseLines(shown.stdout)
      .flat()
      .map((link) => [text(link.ifname), link]),
  );
  const nextHops = new Map<string, NextHop>();
  for (const [address, { type, dev, gateway, via, metrics }] of hops) {
    const link = links.get(text(dev));
    // An address of this node itself has type `local`.
    if (link === undefined || (type !== undefined && type !== "unicast")) continue;
    const flags = list(link.flags);
    const isEthernet = link.link_type === "ether" && flags.includes("BROADCAST") && !flags.includes("NOARP");
    // A route may have an MTU of its own.
    const ofRoute = Array.isArray(metrics) ? (metrics[0] as Json | undefined)?.mtu : undefined;
    nextHops.set(address, {
      device: text(dev),
      isOnLink: isEthernet && gateway === undefined && via === undefined,
      mtu: Math.min(number(link.mtu), number(ofRoute)),
    });
  }
  return nextHops;
}

function toDevice(link: Json): KernelState["device"] {
  const info = object(object(link.linkinfo).info_data);
  const isForeign = info.id !== VXLAN_ID || info.port !== VXLAN_PORT || info.learning !== false;
  return {
    mac: text(link.address),
    local: text(info.local ?? info.local6),
    mtu: number(link.mtu),
    addresses: (Array.isArray(link.addr_info) ? (link.addr_info as readonly Json[]) : [])
      .filter(({ scope }) => scope === "global")
      .map(({ local, prefixlen }) => `${text(local)}/${prefixlen}`),
    isUp: list(link.flags).includes("UP"),
    isForeign,
  };
}

/** A list for each line; empty lists stand for commands that failed only at the end of the output. */
function parseLines(stdout: string): readonly (readonly Json[])[] {
  return stdout
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as readonly Json[])
    .map((entries) => entries.filter((entry) => Object.keys(entry).length > 0));
}

function object(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function number(value: unknown): number {
  return typeof value === "number" ? value : Number.POSITIVE_INFINITY;
}
