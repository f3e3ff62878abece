/** The memory of each NUMA node that is reserved for the system (`--reserved-memory`). */
import { formatQuantity, parseQuantity } from "../../../api/meta/quantity.ts";
import { parseNanos, parseUnits } from "../../pods/resources/quantities.ts";

export interface MemoryReservation {
  readonly numaNode: number;
  /** By resource. */
  readonly limits: Readonly<Record<string, string>>;
}

/** By node and resource: bytes. */
export type ReservedMemory = ReadonlyMap<number, Readonly<Record<string, number>>>;

/**
 * `allocatableReservation` has, by resource, what the node's allocatable does not include of its capacity. Throws
 * Kubernetes' message when the reservations of the nodes do not add up to it.
 */
export function parseReservedMemory(
  reservations: readonly MemoryReservation[],
  nodes: readonly number[],
  allocatableReservation: Readonly<Record<string, string>>,
): ReservedMemory {
  const totals = new Map<string, bigint>();
  const reserved = new Map<number, Record<string, number>>(nodes.map((node) => [node, {}]));
  for (const { numaNode, limits } of reservations) {
    const ofNode = reserved.get(numaNode);
    if (ofNode === undefined) {
      const what = `the reserved memory configuration references a NUMA node ${numaNode}`;
      throw new Error(`${what} that does not exist on this machine`);
    }
    for (const [resource, quantity] of Object.entries(limits)) {
      totals.set(resource, (totals.get(resource) ?? 0n) + parseNanos(quantity));
      ofNode[resource] = parseUnits(quantity);
    }
  }
  const types = Object.keys(allocatableReservation).filter(
    (name) => name === "memory" || name.startsWith("hugepages-"),
  );
  for (const resource of new Set([...totals.keys(), ...types])) {
    const total = totals.get(resource) ?? 0n;
    const expected = allocatableReservation[resource] ?? "0";
    if (total === parseNanos(expected)) continue;
    const sum = JSON.stringify(formatBytes(reservations, resource));
    const figures = `the total amount ${sum} of type "${resource}" is not equal to the value`;
    throw new Error(`${figures} ${JSON.stringify(expected)} determined by Node Allocatable feature`);
  }
  return reserved;
}

function formatBytes(reservations: readonly MemoryReservation[], resource: string): string {
  const quantities = reservations
    .flatMap(({ limits }) => limits[resource] ?? [])
    .flatMap((q) => parseQuantity(q) ?? []);
  const [first] = quantities;
  if (first === undefined) return "0";
  const nanos = quantities.reduce((sum, quantity) => sum + quantity.nanos, 0n);
  return formatQuantity({ ...first, nanos });
}
