/** The commands that lead from what the kernel has to what it must have. */
import { type KernelState, ROUTE_PROTOCOL, VXLAN_ID, VXLAN_PORT } from "./kernel-state.ts";
import type { NetworkNames } from "./network-names.ts";
import type { NetworkPlan, Route, VxlanDevice } from "./network-plan.ts";

export interface KernelChanges {
  readonly ip: readonly string[];
  /** Run after those of `ip`. */
  readonly bridge: readonly string[];
}

const empty: NetworkPlan = { device: undefined, routes: [], neighbors: [], forwarding: [], problems: [] };

/** Computes the commands. Without a plan everything is removed; the lists are empty if nothing differs. */
export function findChanges(plan: NetworkPlan | undefined, state: KernelState, own: NetworkNames): KernelChanges {
  const wanted = plan ?? empty;
  const ip: string[] = [];
  const bridge: string[] = [];
  const isReplaced = state.device !== undefined && !isUsable(wanted.device, state.device);
  if (isReplaced) ip.push(`link delete ${own.device}`);
  // The device takes its routes, neighbours and entries with it.
  const has: KernelState = isReplaced
    ? {
        ...state,
        device: undefined,
        routes: state.routes.filter(({ device }) => device !== own.device),
        neighbors: [],
        forwarding: [],
      }
    : state;
  if (wanted.device !== undefined) ip.push(...deviceCommands(wanted.device, has.device, own.device));
  for (const route of subtract(has.routes, wanted.routes, routeKey)) {
    // `replace` changes a route to the same destination at once, without a time in which there is none.
    if (wanted.routes.some(({ destination }) => destination === route.destination)) continue;
    ip.push(`route delete ${route.destination} ${routeAttributes(own)}`);
  }
  for (const { address, mac } of subtract(wanted.neighbors, has.neighbors, neighborKey)) {
    ip.push(`neigh replace ${address} lladdr ${mac} dev ${own.device} nud permanent`);
  }
  for (const { address } of subtract(has.neighbors, wanted.neighbors, ({ address }) => address)) {
    ip.push(`neigh delete ${address} dev ${own.device}`);
  }
  for (const { mac, address } of subtract(has.forwarding, wanted.forwarding, forwardingKey)) {
    bridge.push(`fdb delete ${mac} dev ${own.device} dst ${address} self`);
  }
  for (const { mac, address } of subtract(wanted.forwarding, has.forwarding, forwardingKey)) {
    bridge.push(`fdb append ${mac} dev ${own.device} dst ${address} self permanent`);
  }
  for (const { destination, gateway, device } of subtract(wanted.routes, has.routes, routeKey)) {
    const onlink = device === own.device ? " onlink" : "";
    ip.push(`route replace ${destination} via ${gateway} dev ${device}${onlink} ${routeAttributes(own)}`);
  }
  return { ip, bridge };
}

function isUsable(wanted: VxlanDevice | undefined, has: NonNullable<KernelState["device"]>): boolean {
  return wanted !== undefined && !has.isForeign && has.mac === wanted.mac && has.local === wanted.local;
}

function deviceCommands(
  { mac, local, mtu, addresses }: VxlanDevice,
  has: KernelState["device"],
  name: string,
): readonly string[] {
  const commands: string[] = [];
  if (has === undefined) {
    commands.push(
      `link add ${name} address ${mac} mtu ${mtu} type vxlan id ${VXLAN_ID} dstport ${VXLAN_PORT} local ${local} nolearning`,
      `link set ${name} addrgenmode none`,
    );
  } else if (has.mtu !== mtu) commands.push(`link set ${name} mtu ${mtu}`);
  if (has?.isUp !== true) commands.push(`link set ${name} up`);
  for (const address of addresses) {
    if (has?.addresses.includes(address) === true) continue;
    commands.push(`address add ${address} dev ${name}${address.includes(":") ? " nodad" : ""}`);
  }
  // After the others: the kernel drops neighbours and routes with the last address.
  for (const address of has?.addresses ?? []) {
    if (!addresses.includes(address)) commands.push(`address delete ${address} dev ${name}`);
  }
  return commands;
}

function routeAttributes({ metric }: NetworkNames): string {
  return `proto ${ROUTE_PROTOCOL} metric ${metric}`;
}

function subtract<T>(all: readonly T[], others: readonly T[], keyOf: (each: T) => string): readonly T[] {
  const keys = new Set(others.map(keyOf));
  return all.filter((each) => !keys.has(keyOf(each)));
}

function routeKey({ destination, gateway, device }: Route): string {
  return `${destination} ${gateway} ${device}`;
}

function neighborKey({ address, mac }: NetworkPlan["neighbors"][number]): string {
  return `${address} ${mac}`;
}

function forwardingKey({ mac, address }: NetworkPlan["forwarding"][number]): string {
  return `${mac} ${address}`;
}
