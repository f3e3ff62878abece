/** The state of one evaluation: variables and spent cost. */
import { fail, type Value } from "../values/value.ts";

/** The evaluation exceeded its budget. Unlike a `Failure`, `||` and `&&` do not absorb it. */
export class CostExceeded {
  readonly message = "operation cancelled: actual cost limit exceeded";
}

/** A planned node. Throws a `Failure` or `CostExceeded`. */
export type Interpretable = (frame: Frame) => Value;

const FREE_COMPARISONS = 10_000;

export class Frame {
  spent = 0;
  readonly #budget: number;
  readonly #slots: (Value | undefined | (() => Value))[];

  constructor(slots: (Value | undefined | (() => Value))[], budget: number) {
    this.#slots = slots;
    this.#budget = budget;
  }

  charge(cost: number): void {
    this.spent += cost;
    if (this.spent > this.#budget) throw new CostExceeded();
  }

  /** Charges comparisons of large values, since the cost of `==` counts only the outermost parts. */
  chargeComparisons(parts: number): void {
    if (parts > FREE_COMPARISONS) this.charge(Math.ceil((parts - FREE_COMPARISONS) / 10));
  }

  get(slot: number): Value | undefined {
    const slotValue = this.#slots[slot];
    if (typeof slotValue !== "function") return slotValue;
    const value = slotValue();
    this.#slots[slot] = value;
    return value;
  }

  set(slot: number, value: Value | (() => Value)): void {
    this.#slots[slot] = value;
  }
}

/** Reads a variable; fails when it has no value. */
export function planRead(slot: number, name: string): Interpretable {
  return (frame) => {
    const value = frame.get(slot);
    return value === undefined ? fail(`no such attribute(s): ${name}`) : value;
  };
}
