/** Amounts of resources as numbers: CPU in thousandths of a core, all others in whole units, both rounded up. */

import type { ResourceList } from "../../api/core/resources/schema.ts";
import { parseQuantity, quantityMilliValue, quantityValue } from "../../api/meta/quantity.ts";

export class Resources {
  milliCpu = 0;
  memory = 0;
  ephemeralStorage = 0;
  /** Extended resources and huge pages. */
  readonly scalars = new Map<string, number>();

  static of(list: ResourceList | undefined): Resources {
    const resources = new Resources();
    for (const [name, text] of Object.entries(list ?? {})) resources.set(name, amountOf(name, text));
    return resources;
  }

  get(name: string): number {
    if (name === "cpu") return this.milliCpu;
    if (name === "memory") return this.memory;
    if (name === "ephemeral-storage") return this.ephemeralStorage;
    return this.scalars.get(name) ?? 0;
  }

  set(name: string, amount: number): void {
    if (name === "cpu") this.milliCpu = amount;
    else if (name === "memory") this.memory = amount;
    else if (name === "ephemeral-storage") this.ephemeralStorage = amount;
    else if (name !== "pods") this.scalars.set(name, amount);
  }

  add(other: Resources, factor: 1 | -1 = 1): void {
    this.milliCpu += factor * other.milliCpu;
    this.memory += factor * other.memory;
    this.ephemeralStorage += factor * other.ephemeralStorage;
    for (const [name, amount] of other.scalars) this.scalars.set(name, (this.scalars.get(name) ?? 0) + factor * amount);
  }

  /** Raises each amount to that of the other, if that is larger. */
  raise(other: Resources): void {
    this.milliCpu = Math.max(this.milliCpu, other.milliCpu);
    this.memory = Math.max(this.memory, other.memory);
    this.ephemeralStorage = Math.max(this.ephemeralStorage, other.ephemeralStorage);
    for (const [name, amount] of other.scalars) this.scalars.set(name, Math.max(this.scalars.get(name) ?? 0, amount));
  }

  clone(): Resources {
    const copy = new Resources();
    copy.add(this);
    return copy;
  }

  /** The names with an amount other than zero. */
  names(): readonly string[] {
    const base = ["cpu", "memory", "ephemeral-storage"].filter((name) => this.get(name) !== 0);
    return [...base, ...[...this.scalars].filter(([, amount]) => amount !== 0).map(([name]) => name)];
  }
}

/** Most pods have the same few quantities. The cache is emptied when it is full. */
const PARSED_MAX = 4096;
const parsed = new Map<string, { readonly milli: number; readonly whole: number }>();

function amountOf(name: string, text: string): number {
  let amount = parsed.get(text);
  if (amount === undefined) {
    const quantity = parseQuantity(text);
    amount = {
      milli: quantity === undefined ? 0 : quantityMilliValue(quantity),
      whole: quantity === undefined ? 0 : quantityValue(quantity),
    };
    if (parsed.size >= PARSED_MAX) parsed.clear();
    parsed.set(text, amount);
  }
  return name === "cpu" ? amount.milli : amount.whole;
}
