/** Subsets of Endpoints: addresses that share their ports are one subset. */
import type { EndpointAddress, EndpointPort, EndpointSubset } from "../../api/core/endpoints/schema.ts";
import { sortSubsetPorts } from "./port-order.ts";

/** Kubernetes writes at most this many addresses. */
const ADDRESSES_MAX = 1000;

interface AddressState {
  readonly address: EndpointAddress;
  isReady: boolean;
}

/** Ports that the same subsets have, so that they have the same addresses. */
interface PortGroup {
  /** Undefined: a subset without ports. */
  readonly ports: (EndpointPort | undefined)[];
  /** Indexes. */
  readonly subsets: readonly number[];
}

/** Addresses with their states in all groups of ports, which multiply: more are not compared. */
const STATES_MAX = 100_000;

/**
 * Addresses with the same ports become one subset. Subsets, addresses and ports get a fixed order. Subsets with many
 * combinations of ports and addresses stay as they are.
 */
export function repackSubsets(subsets: readonly EndpointSubset[]): readonly EndpointSubset[] {
  const sizes = subsets.map(
    ({ addresses = [], notReadyAddresses = [] }) => addresses.length + notReadyAddresses.length,
  );
  const groups = groupPorts(subsets);
  const states = groups.reduce((sum, group) => sum + group.subsets.reduce((size, index) => size + sizes[index]!, 0), 0);
  if (states > STATES_MAX) return subsets;
  const listed = groups.map((group) => ({ ports: group.ports, addresses: addressesOf(group.subsets, subsets) }));
  const byAddresses = Map.groupBy(listed, ({ addresses }) => addressesKey(addresses));
  const packed = [...byAddresses.values()].map((sharing): EndpointSubset => {
    const all = [...(sharing[0]?.addresses.values() ?? [])];
    const select = (isReady: boolean) =>
      all
        .filter((state) => state.isReady === isReady)
        .map(({ address }) => address)
        .sort(compareAddresses);
    const ports = sharing.flatMap((each) => each.ports.filter((port) => port !== undefined));
    return packSubset(select(true), select(false), sortSubsetPorts(ports));
  });
  const keyed = packed.map((subset) => ({ subset, key: JSON.stringify(subset) }));
  return keyed.sort((a, b) => compare(a.key, b.key)).map(({ subset }) => subset);
}

/** Lists without items are absent. */
function packSubset(
  addresses: readonly EndpointAddress[],
  notReadyAddresses: readonly EndpointAddress[],
  ports: readonly EndpointPort[],
): EndpointSubset {
  return {
    ...(addresses.length > 0 ? { addresses } : {}),
    ...(notReadyAddresses.length > 0 ? { notReadyAddresses } : {}),
    ...(ports.length > 0 ? { ports } : {}),
  };
}

/** Subsets often share a list of ports: each list is read once. */
function groupPorts(subsets: readonly EndpointSubset[]): readonly PortGroup[] {
  const byList = Map.groupBy(subsets.keys(), (index) => subsets[index]?.ports ?? NO_PORTS);
  const lists = [...byList];
  const byPort = new Map<string, { readonly port: EndpointPort | undefined; readonly lists: Set<number> }>();
  for (const [list, [ports]] of lists.entries()) {
    for (const port of ports.length === 0 ? [undefined] : ports) {
      const key = JSON.stringify([port?.name, port?.port, port?.protocol, port?.appProtocol]);
      const known = byPort.get(key) ?? { port, lists: new Set<number>() };
      byPort.set(key, known);
      known.lists.add(list);
    }
  }
  const groups = new Map<string, PortGroup>();
  for (const known of byPort.values()) {
    const key = [...known.lists].join();
    const group = groups.get(key);
    if (group !== undefined) {
      group.ports.push(known.port);
      continue;
    }
    const indexes = [...known.lists].flatMap((list) => lists[list]?.[1] ?? []);
    groups.set(key, { ports: [known.port], subsets: indexes.sort((a, b) => a - b) });
  }
  return [...groups.values()];
}

const NO_PORTS: readonly EndpointPort[] = [];

/** Of these subsets, by address and pod. */
function addressesOf(
  indexes: readonly number[],
  subsets: readonly EndpointSubset[],
): ReadonlyMap<string, AddressState> {
  const states = new Map<string, AddressState>();
  for (const index of indexes) {
    const { addresses = [], notReadyAddresses = [] } = subsets[index] ?? {};
    for (const address of addresses) addAddress(states, address, true);
    for (const address of notReadyAddresses) addAddress(states, address, false);
  }
  return states;
}

/** An address that is listed as not ready anywhere is not ready. */
function addAddress(states: Map<string, AddressState>, address: EndpointAddress, isReady: boolean): void {
  const key = `${address.ip}/${address.targetRef?.uid ?? ""}`;
  const existing = states.get(key);
  if (existing === undefined) states.set(key, { address, isReady });
  else existing.isReady &&= isReady;
}

function addressesKey(addresses: ReadonlyMap<string, AddressState>): string {
  return [...addresses]
    .map(([key, { isReady }]) => `${key}/${isReady}`)
    .sort()
    .join();
}

function compareAddresses(a: EndpointAddress, b: EndpointAddress): number {
  return compare(a.ip, b.ip) || compare(a.targetRef?.uid ?? "", b.targetRef?.uid ?? "");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function exceedsCapacity(subsets: readonly EndpointSubset[]): boolean {
  return count(subsets, "addresses") + count(subsets, "notReadyAddresses") > ADDRESSES_MAX;
}

/** Removes addresses from all subsets in proportion, those that are not ready first. */
export function truncateSubsets(subsets: readonly EndpointSubset[]): readonly EndpointSubset[] {
  const ready = count(subsets, "addresses");
  const truncatesReady = ready > ADDRESSES_MAX;
  const field = truncatesReady ? "addresses" : "notReadyAddresses";
  const total = count(subsets, field);
  const capacity = truncatesReady ? ADDRESSES_MAX : ADDRESSES_MAX - ready;
  let left = capacity;
  return subsets.map((subset): EndpointSubset => {
    const { addresses = [], notReadyAddresses = [], ports } = subset;
    const listed = truncatesReady ? addresses : notReadyAddresses;
    const kept = listed.slice(0, Math.min(Math.ceil((listed.length / total) * capacity), left));
    left -= kept.length;
    return packSubset(truncatesReady ? kept : addresses, truncatesReady ? [] : kept, ports ?? []);
  });
}

function count(subsets: readonly EndpointSubset[], field: "addresses" | "notReadyAddresses"): number {
  return subsets.reduce((sum, subset) => sum + (subset[field]?.length ?? 0), 0);
}
