/** What one evaluation holds: its variables, and what it has spent. */
import { fail, type Value } from "../values/value.ts";

/** The budget is used up: ends the evaluation wherever it is, and no `||` makes up for it. */
export class CostExceeded {
  readonly message = "operation cancelled: actual cost limit exceeded";
}

/** A part of an expression, ready to be evaluated. Throws a `Failure` or `CostExceeded`. */
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

  /** For comparisons of more than most: their figures count only the outermost parts. */
  chargeComparisons(parts: number): void {
    if (parts > FREE_COMPARISONS) this.charge(Math.ceil((parts - FREE_COMPARISONS) / 10));
  }

  get(slot: number): Value | undefined {
    const held = this.#slots[slot];
    if (typeof held !== "function") return held;
    const value = held();
    this.#slots[slot] = value;
    return value;
  }

  set(slot: number, value: Value | (() => Value)): void {
    this.#slots[slot] = value;
  }
}

/** Reads a variable, or says that it was not given. */
export function planRead(slot: number, name: string): Interpretable {
  return (frame) => {
    const value = frame.get(slot);
    return value === undefined ? fail(`no such attribute(s): ${name}`) : value;
  };
}
