/** Subsets of Endpoints: addresses that share their ports are one subset. */
import type { EndpointAddress, EndpointPort, EndpointSubset } from "../../api/core/endpoints/schema.ts";
import { sortSubsetPorts } from "./port-order.ts";

/** Kubernetes writes at most this many addresses. */
const ADDRESSES_MAX = 1000;

interface AddressState {
  readonly address: EndpointAddress;
  isReady: boolean;
}

/** The addresses of each port, by address and pod. */
interface PortAddresses {
  readonly port: EndpointPort | undefined;
  readonly addresses: Map<string, AddressState>;
}

/** Addresses with the same ports become one subset. Subsets, addresses and ports get a fixed order. */
export function repackSubsets(subsets: readonly EndpointSubset[]): readonly EndpointSubset[] {
  const byAddresses = Map.groupBy(groupByPort(subsets), ({ addresses }) => addressesKey(addresses));
  const packed = [...byAddresses.values()].map((group): EndpointSubset => {
    const states = [...(group[0]?.addresses.values() ?? [])];
    const listed = (isReady: boolean) =>
      states
        .filter((state) => state.isReady === isReady)
        .map(({ address }) => address)
        .sort(compareAddresses);
    const [addresses, notReadyAddresses] = [listed(true), listed(false)];
    const ports = sortSubsetPorts(group.flatMap(({ port }) => (port === undefined ? [] : [port])));
    return packSubset(addresses, notReadyAddresses, ports);
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

function groupByPort(subsets: readonly EndpointSubset[]): readonly PortAddresses[] {
  const groups = new Map<string, PortAddresses>();
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    for (const port of ports.length === 0 ? [undefined] : ports) {
      const key = JSON.stringify([port?.name, port?.port, port?.protocol, port?.appProtocol]);
      const group = groups.get(key) ?? { port, addresses: new Map<string, AddressState>() };
      groups.set(key, group);
      for (const address of addresses) addAddress(group, address, true);
      for (const address of notReadyAddresses) addAddress(group, address, false);
    }
  }
  return [...groups.values()];
}

/** An address that is listed as not ready anywhere is not ready. */
function addAddress({ addresses }: PortAddresses, address: EndpointAddress, isReady: boolean): void {
  const key = `${address.ip}/${address.targetRef?.uid ?? ""}`;
  const existing = addresses.get(key);
  if (existing === undefined) addresses.set(key, { address, isReady });
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
