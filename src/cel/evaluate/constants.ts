/** What is known of an expression at load, so that evaluating it costs nothing. */

import type { CheckedExpression } from "../check/checked.ts";
import type { Call, Expr, MapLiteral } from "../parse/ast.ts";
import { Uint } from "../values/compare.ts";
import { EntryMap } from "../values/entry-map.ts";
import { ArrayList, Failure, type Value } from "../values/value.ts";
import { createDispatcher } from "./overload-dispatch.ts";

const conversions: ReadonlySet<string> = new Set(
  "bool bytes double duration dyn int string timestamp type uint".split(" "),
);

export class ConstantFolder {
  readonly #checked: CheckedExpression;
  readonly #folded = new Map<Expr, Value | undefined>();

  constructor(checked: CheckedExpression) {
    this.#checked = checked;
  }

  /** Literals, lists and maps of constants, and conversions of them: known at load, and free. */
  fold(expr: Expr): Value | undefined {
    if (this.#folded.has(expr)) return this.#folded.get(expr);
    const value = this.#foldNode(expr);
    this.#folded.set(expr, value);
    return value;
  }

  #foldNode(expr: Expr): Value | undefined {
    switch (expr.kind) {
      case "literal":
        return expr.unsigned === true ? new Uint(expr.value as bigint) : expr.value;
      case "identifier":
      case "select": {
        const reference = this.#checked.referenceOf(expr);
        return reference?.kind === "constant" ? reference.value : undefined;
      }
      case "list": {
        if (expr.optional.size > 0) return undefined;
        const items = expr.elements.map((element) => this.fold(element));
        return items.every((item) => item !== undefined) ? new ArrayList(items) : undefined;
      }
      case "map":
        return this.#foldMap(expr);
      case "call":
        return this.#foldConversion(expr);
      default:
        return undefined;
    }
  }

  #foldMap(expr: MapLiteral): Value | undefined {
    const entries: (readonly [Value, Value])[] = [];
    for (const { key, value, optional } of expr.entries) {
      const [name, held] = [this.fold(key), this.fold(value)];
      if (optional || name === undefined || held === undefined) return undefined;
      entries.push([name, held]);
    }
    return tryEvaluate(() => EntryMap.of(entries));
  }

  #foldConversion(expr: Call): Value | undefined {
    const [only] = expr.args;
    const reference = this.#checked.referenceOf(expr);
    if (expr.target !== undefined || expr.args.length !== 1 || !conversions.has(expr.name)) return undefined;
    const value = this.fold(only!);
    if (value === undefined || reference?.kind !== "call") return undefined;
    return tryEvaluate(() => (createDispatcher(reference.overloads)([value]).call as (value: Value) => Value)(value));
  }
}

/** What fails at load is left to fail when it is evaluated. */
function tryEvaluate(make: () => Value): Value | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
