/** Folds constants when an expression is compiled. */

import type { CheckedExpression } from "../check/checked-expression.ts";
import type { Call, Identifier, ListLiteral, Literal, MapLiteral, Select } from "../parse/ast.ts";
import { ExprPass } from "../parse/visitor.ts";
import { Uint } from "../values/compare.ts";
import { EntryMap } from "../values/entry-map.ts";
import { ArrayList, Failure, type Value } from "../values/value.ts";
import { createDispatcher } from "./overload-dispatch.ts";

const conversions: ReadonlySet<string> = new Set(
  "bool bytes double duration dyn int string timestamp type uint".split(" "),
);

/**
 * Folds literals, lists and maps of constants, and conversions of constants; evaluating them costs nothing. The result
 * of all other nodes is undefined.
 */
export class ConstantFolder extends ExprPass<Value | undefined> {
  readonly #checked: CheckedExpression;

  constructor(checked: CheckedExpression) {
    super();
    this.#checked = checked;
  }

  literal({ value, unsigned }: Literal): Value {
    return unsigned === true ? new Uint(value as bigint) : value;
  }

  identifier(expr: Identifier): Value | undefined {
    return this.#constantOf(expr);
  }

  select(expr: Select): Value | undefined {
    return this.#constantOf(expr);
  }

  list(expr: ListLiteral): Value | undefined {
    if (expr.optional.size > 0) return undefined;
    const items = expr.elements.map((element) => this.visit(element));
    return items.every((item) => item !== undefined) ? new ArrayList(items) : undefined;
  }

  object(): undefined {
    return undefined;
  }

  comprehension(): undefined {
    return undefined;
  }

  #constantOf(expr: Identifier | Select): Value | undefined {
    const reference = this.#checked.referenceOf(expr);
    return reference?.kind === "constant" ? reference.value : undefined;
  }

  map(expr: MapLiteral): Value | undefined {
    const entries: (readonly [Value, Value])[] = [];
    for (const { key, value, optional } of expr.entries) {
      const [name, entryValue] = [this.visit(key), this.visit(value)];
      if (optional || name === undefined || entryValue === undefined) return undefined;
      entries.push([name, entryValue]);
    }
    return tryEvaluate(() => EntryMap.of(entries));
  }

  call(expr: Call): Value | undefined {
    const [only] = expr.args;
    const reference = this.#checked.referenceOf(expr);
    if (expr.target !== undefined || expr.args.length !== 1 || !conversions.has(expr.name)) return undefined;
    const value = this.visit(only!);
    if (value === undefined || reference?.kind !== "call") return undefined;
    const { name, overloads } = reference;
    return instantiate(() => (createDispatcher(name, overloads)([value]).call as (value: Value) => Value)(value));
  }
}

/** A constant has no value, or another does not accept it: the expression has no program. */
export class InstantiationError extends Error {}

/** A failure is one of the whole expression. */
export function instantiate<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof Failure) throw new InstantiationError(error.message);
    throw error;
  }
}

/** Failures are left to evaluation. */
function tryEvaluate(make: () => Value): Value | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
