/** What Kubernetes checks at compile time beyond types: literals, and the literal arguments of some functions. */

import type { Environment } from "../environment.ts";
import { createDispatcher } from "../evaluate/overload-dispatch.ts";
import { compileCached } from "../libraries/regex.ts";
import { type Call, children, type Expr, type ListLiteral, type MapLiteral } from "../parse/ast.ts";
import { type CelError, createError } from "../parse/source.ts";
import { formatType, type Type } from "../values/types.ts";
import { Failure, type Value } from "../values/value.ts";
import { checkFormat, type Issue } from "./check-format.ts";
import type { CheckedExpression, Reference } from "./checked-expression.ts";
import { isSameType, unwrapOptional } from "./unify.ts";

export function checkLiterals(
  checked: CheckedExpression,
  source: string,
  { mixedLiterals, unchecked }: Environment,
): readonly CelError[] {
  const checker = new LiteralChecker(checked);
  if (!unchecked) checker.visit(checked.expr, mixedLiterals);
  return checker.issues.map(({ offset, message }) => createError(source, offset, message));
}

class LiteralChecker {
  readonly issues: Issue[] = [];
  readonly #checked: CheckedExpression;
  /** Macros use an argument several times. */
  readonly #seen = new Set<Expr>();

  constructor(checked: CheckedExpression) {
    this.#checked = checked;
  }

  /** `mixed`: items of several types are allowed. */
  visit(expr: Expr, mixed: boolean): void {
    if (this.#seen.has(expr)) return;
    this.#seen.add(expr);
    const reference = this.#checked.referenceOf(expr);
    const isFormat = reference?.kind === "call" && reference.name === "format";
    for (const child of children(expr)) this.visit(child, mixed || isFormat);
    if (expr.kind === "call" && reference?.kind === "call") this.#checkCall(expr, reference);
    else if (expr.kind === "list" && !mixed) this.#checkList(expr);
    else if (expr.kind === "map" && !mixed) this.#checkMap(expr);
  }

  #checkCall(expr: Call, reference: Reference & { readonly kind: "call" }): void {
    const { name } = reference;
    if (name === "format") this.issues.push(...checkFormat(expr, this.#checked));
    const [arg] = expr.args;
    if (arg?.kind !== "literal" || !LITERAL_FUNCTIONS.has(name)) return;
    const isValid = name === "matches" ? isPattern(arg.value) : isConvertible(arg.value, reference);
    if (!isValid) this.issues.push({ offset: arg.offset, message: `invalid ${name} argument` });
  }

  #checkList({ elements, optional }: ListLiteral): void {
    const [first, ...others] = elements.map((element, index) => ({
      element,
      type: this.#typeOf(element, optional.has(index)),
    }));
    const other = others.find(({ type }) => !isSameType(first!.type, type));
    if (other !== undefined) this.#reportType(other.element, first!.type, other.type);
  }

  #checkMap({ entries }: MapLiteral): void {
    const [first, ...others] = entries;
    if (first === undefined) return;
    const keyType = this.#typeOf(first.key, false);
    const valueType = this.#typeOf(first.value, first.optional);
    for (const { key, value, optional } of others) {
      this.#compareType(key, keyType, this.#typeOf(key, false));
      this.#compareType(value, valueType, this.#typeOf(value, optional));
    }
  }

  #compareType(expr: Expr, expected: Type, actual: Type): void {
    if (!isSameType(expected, actual)) this.#reportType(expr, expected, actual);
  }

  #typeOf(expr: Expr, optional: boolean): Type {
    const type = this.#checked.typeOf(expr);
    return optional ? (unwrapOptional(type) ?? type) : type;
  }

  #reportType({ offset }: Expr, expected: Type, actual: Type): void {
    this.issues.push({ offset, message: `expected type '${formatType(expected)}' but found '${formatType(actual)}'` });
  }
}

/** Their first argument is checked; of `matches(text, pattern)` this is the text. */
const LITERAL_FUNCTIONS: ReadonlySet<string> = new Set(["duration", "timestamp", "matches"]);

function isPattern(value: unknown): boolean {
  return typeof value !== "string" || succeeds(() => compileCached(value));
}

function isConvertible(value: Value, { name, overloads }: Reference & { readonly kind: "call" }): boolean {
  return succeeds(() => (createDispatcher(name, overloads)([value]).call as (value: Value) => Value)(value));
}

function succeeds(run: () => unknown): boolean {
  try {
    run();
    return true;
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}
