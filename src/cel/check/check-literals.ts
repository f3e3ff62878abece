/** Checks literal arguments of `timestamp`, `duration` and `matches`, as Kubernetes does at compile time. */

import { parseDuration } from "../../schema/value/time.ts";
import { compileCached } from "../libraries/regex.ts";
import { children, type Expr } from "../parse/ast.ts";
import { type CelError, createError } from "../parse/source.ts";
import { Timestamp } from "../values/time-value.ts";
import { Failure } from "../values/value.ts";
import type { CheckedExpression } from "./checked-expression.ts";

type Check = (text: string) => boolean;

const checks: Readonly<Record<string, Check>> = {
  duration: (text) => parseDuration(text) !== undefined,
  timestamp: (text) => Timestamp.parse(text) !== undefined,
  matches: (text) => {
    compileCached(text);
    return true;
  },
};

export function checkLiterals(checked: CheckedExpression, source: string): readonly CelError[] {
  const errors: CelError[] = [];
  const seen = new Set<Expr>();
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    for (const child of children(expr)) visit(child);
    const invalid = invalidLiteral(checked, expr);
    if (invalid !== undefined) errors.push(createError(source, invalid.offset, `invalid ${invalid.name} argument`));
  };
  visit(checked.expr);
  return errors;
}

function invalidLiteral(
  checked: CheckedExpression,
  expr: Expr,
): { readonly offset: number; readonly name: string } | undefined {
  if (expr.kind !== "call") return undefined;
  const reference = checked.referenceOf(expr);
  const name = reference?.kind === "call" ? reference.name : "";
  const arg = expr.args.at(-1);
  if (!Object.hasOwn(checks, name) || arg?.kind !== "literal" || typeof arg.value !== "string") return undefined;
  return isValid(checks[name]!, arg.value) ? undefined : { offset: arg.offset, name };
}

function isValid(check: Check, text: string): boolean {
  try {
    return check(text);
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}
