/** Amounts of resources by name, to reckon with. */
import { addQuantities, compareQuantities, formatQuantity, parseQuantity, type Quantity } from "../../meta/quantity.ts";
import type { ResourceList } from "./schema.ts";

export type Amounts = ReadonlyMap<string, Quantity>;

export const NOTHING: Amounts = new Map();
export const ONE: Quantity = { nanos: 1_000_000_000n, format: "DecimalSI" };
const ZERO: Quantity = { nanos: 0n, format: "DecimalSI" };

/** Texts that are no quantities count as nothing. */
export function amountsOf(list: ResourceList | undefined): Amounts {
  return new Map(Object.entries(list ?? {}).map(([name, text]) => [name, parseQuantity(text) ?? ZERO]));
}

/** In the order of their names. */
export function listOf(amounts: Amounts): ResourceList {
  return Object.fromEntries(sorted(amounts).map(([name, amount]) => [name, formatQuantity(amount)]));
}

/** Of both what each has. */
export function sum(a: Amounts, b: Amounts): Amounts {
  return merged(a, b, addQuantities);
}

export function largest(...all: readonly Amounts[]): Amounts {
  return all.reduce((a, b) => merged(a, b, (x, y) => (compareQuantities(x, y) < 0 ? y : x)), NOTHING);
}

/** What only the second has is negative then. */
export function difference(a: Amounts, b: Amounts): Amounts {
  const negative = new Map([...b].map(([name, { nanos, format }]) => [name, { nanos: -nanos, format }]));
  return sum(a, negative);
}

export function pick(amounts: Amounts, isWanted: (name: string, amount: Quantity) => boolean): Amounts {
  return new Map([...amounts].filter(([name, amount]) => isWanted(name, amount)));
}

/** `cpu=1,memory=1Gi` */
export function amountsText(amounts: Amounts): string {
  return sorted(amounts)
    .map(([name, amount]) => `${name}=${formatQuantity(amount)}`)
    .join(",");
}

function sorted(amounts: Amounts): [string, Quantity][] {
  return [...amounts].sort(([a], [b]) => (a < b ? -1 : 1));
}

function merged(a: Amounts, b: Amounts, both: (x: Quantity, y: Quantity) => Quantity): Amounts {
  const all = new Map(a);
  for (const [name, amount] of b) {
    const known = all.get(name);
    all.set(name, known === undefined ? amount : both(known, amount));
  }
  return all;
}
