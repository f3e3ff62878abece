/** Resource quantities by name, parsed, with arithmetic on them. */
import { addQuantities, compareQuantities, formatQuantity, parseQuantity, type Quantity } from "../../meta/quantity.ts";
import type { ResourceList } from "./schema.ts";

export type ResourceQuantities = ReadonlyMap<string, Quantity>;

export const NO_RESOURCES: ResourceQuantities = new Map();
export const ONE_UNIT: Quantity = { nanos: 1_000_000_000n, format: "DecimalSI" };
const ZERO: Quantity = { nanos: 0n, format: "DecimalSI" };

/** Parses a ResourceList; invalid quantities count as zero. */
export function parseResourceList(list: ResourceList | undefined): ResourceQuantities {
  return new Map(Object.entries(list ?? {}).map(([name, text]) => [name, parseQuantity(text) ?? ZERO]));
}

/** Formats quantities as a ResourceList, ordered by name. */
export function formatResourceList(amounts: ResourceQuantities): ResourceList {
  return Object.fromEntries(sortByName(amounts).map(([name, amount]) => [name, formatQuantity(amount)]));
}

/** Adds quantities by name; a name in only one of the maps keeps its quantity. */
export function addResources(a: ResourceQuantities, b: ResourceQuantities): ResourceQuantities {
  return mergeResources(a, b, addQuantities);
}

export function maxResources(...all: readonly ResourceQuantities[]): ResourceQuantities {
  return all.reduce((a, b) => mergeResources(a, b, (x, y) => (compareQuantities(x, y) < 0 ? y : x)), NO_RESOURCES);
}

/** Subtracts `b` from `a`; a name in `b` alone becomes negative. */
export function subtractResources(a: ResourceQuantities, b: ResourceQuantities): ResourceQuantities {
  const negative = new Map([...b].map(([name, { nanos, format }]) => [name, { nanos: -nanos, format }]));
  return addResources(a, negative);
}

export function filterResources(
  amounts: ResourceQuantities,
  isWanted: (name: string, amount: Quantity) => boolean,
): ResourceQuantities {
  return new Map([...amounts].filter(([name, amount]) => isWanted(name, amount)));
}

/** The text of messages: `cpu=1,memory=1Gi`. */
export function resourcesText(amounts: ResourceQuantities): string {
  return sortByName(amounts)
    .map(([name, amount]) => `${name}=${formatQuantity(amount)}`)
    .join(",");
}

function sortByName(amounts: ResourceQuantities): [string, Quantity][] {
  return [...amounts].sort(([a], [b]) => (a < b ? -1 : 1));
}

function mergeResources(
  a: ResourceQuantities,
  b: ResourceQuantities,
  both: (x: Quantity, y: Quantity) => Quantity,
): ResourceQuantities {
  const all = new Map(a);
  for (const [name, amount] of b) {
    const existing = all.get(name);
    all.set(name, existing === undefined ? amount : both(existing, amount));
  }
  return all;
}
