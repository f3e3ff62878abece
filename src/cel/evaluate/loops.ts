/** Evaluates iterating macros as loops. Each charges the cost of the general comprehension in cel-go. */

import { EntryMap } from "../values/entry-map.ts";
import { ArrayList, Failure, fail, List, MapValue, type Value } from "../values/value.ts";
import type { Frame, Interpretable } from "./frame.ts";

export interface LoopParts {
  readonly kind: "all" | "exists" | "existsOne" | "list" | "map" | "entries";
  readonly slot: number;
  readonly slot2: number | undefined;
  /** The predicate or the transformation. */
  readonly body: Interpretable;
  readonly bodyIsConstant?: boolean;
  readonly filter?: Interpretable;
}

export function planLoop(range: Interpretable, parts: LoopParts): Interpretable {
  switch (parts.kind) {
    case "all":
      return planQuantifier(range, parts, false, 2);
    case "exists":
      return planQuantifier(range, parts, true, 3);
    case "existsOne":
      return planExistsOne(range, parts);
    case "list":
      return planList(range, parts);
    case "map":
    case "entries":
      return planMap(range, parts);
    default:
      return parts.kind satisfies never;
  }
}

/**
 * Stops at the first item that determines the result, and ignores failures when one does. `conditionCost` is the cost
 * of the loop condition, which is evaluated before each item.
 */
function planQuantifier(
  range: Interpretable,
  parts: LoopParts,
  decisive: boolean,
  conditionCost: number,
): Interpretable {
  const { body } = parts;
  return (frame) => {
    let failure: Failure | undefined;
    let decided = false;
    forEach(range(frame), parts, frame, () => {
      frame.charge(conditionCost);
      if (decided) return false;
      frame.charge(1);
      try {
        const value = body(frame);
        if (value === decisive) decided = true;
        else if (typeof value !== "boolean") failure ??= new Failure("no such overload");
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        failure ??= error;
      }
      return true;
    });
    frame.charge(1);
    if (decided) return decisive;
    if (failure !== undefined) throw failure;
    return !decisive;
  };
}

function planExistsOne(range: Interpretable, parts: LoopParts): Interpretable {
  const { body } = parts;
  return (frame) => {
    let count = 0;
    forEach(range(frame), parts, frame, () => {
      if (requireBool(body(frame))) {
        frame.charge(2);
        count++;
      }
      return true;
    });
    frame.charge(2);
    return count === 1;
  };
}

function planList(range: Interpretable, parts: LoopParts): Interpretable {
  const { body, filter } = parts;
  // The accumulator, a list with the new item, and their sum; the list of a constant item is a constant.
  const cost = parts.bodyIsConstant === true ? 2 : 12;
  return (frame) => {
    const items: Value[] = [];
    forEach(range(frame), parts, frame, () => {
      if (filter !== undefined && !requireBool(filter(frame))) return true;
      const value = body(frame);
      frame.charge(cost);
      items.push(value);
      return true;
    });
    frame.charge(1);
    return new ArrayList(items);
  };
}

function planMap(range: Interpretable, parts: LoopParts): Interpretable {
  const { body, filter, slot } = parts;
  const whole = parts.kind === "entries";
  return (frame) => {
    const entries: (readonly [Value, Value])[] = [];
    forEach(range(frame), parts, frame, () => {
      if (filter !== undefined && !requireBool(filter(frame))) return true;
      const value = body(frame);
      frame.charge(whole ? 2 : 3);
      if (!whole) entries.push([frame.get(slot)!, value]);
      else if (value instanceof MapValue) for (const key of value.keys()) entries.push([key, value.get(key)!]);
      else fail("no such overload");
      return true;
    });
    frame.charge(1);
    return EntryMap.of(entries);
  };
}

/** Loops until `step` returns false. One variable gets items or keys; two get index and item, or key and value. */
function forEach(range: Value, parts: LoopParts, frame: Frame, step: () => boolean): void {
  const { slot, slot2 } = parts;
  if (range instanceof List) {
    let index = 0n;
    for (const item of range) {
      frame.set(slot, slot2 === undefined ? item : index++);
      if (slot2 !== undefined) frame.set(slot2, item);
      if (!step()) return;
    }
  } else if (range instanceof MapValue) {
    for (const key of range.keys()) {
      frame.set(slot, key);
      if (slot2 !== undefined) frame.set(slot2, range.get(key)!);
      if (!step()) return;
    }
  } else {
    fail("no such overload");
  }
}

function requireBool(value: Value): boolean {
  return typeof value === "boolean" ? value : fail("no such overload");
}
