/** Constants that some functions would refuse when they are called: times, spans and patterns that are none. */

import { parseDuration } from "../../schema/value/time.ts";
import { pattern } from "../libraries/regex.ts";
import { children, type Expr } from "../parse/ast.ts";
import { type CelError, locate } from "../parse/source.ts";
import { Timestamp } from "../values/time-value.ts";
import { Failure } from "../values/value.ts";
import type { Checked } from "./checked.ts";

type Check = (text: string) => boolean;

const checks: Readonly<Record<string, Check>> = {
  duration: (text) => parseDuration(text) !== undefined,
  timestamp: (text) => Timestamp.parse(text) !== undefined,
  matches: (text) => {
    pattern(text);
    return true;
  },
};

export function checkLiterals(checked: Checked, source: string): readonly CelError[] {
  const mistakes: CelError[] = [];
  const seen = new Set<Expr>();
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    for (const child of children(expr)) visit(child);
    const wrong = wrongLiteral(checked, expr);
    if (wrong !== undefined) mistakes.push(locate(source, wrong.offset, `invalid ${wrong.name} argument`));
  };
  visit(checked.expr);
  return mistakes;
}

function wrongLiteral(checked: Checked, expr: Expr): { readonly offset: number; readonly name: string } | undefined {
  if (expr.kind !== "call") return undefined;
  const meaning = checked.meaningOf(expr);
  const name = meaning?.kind === "call" ? meaning.name : "";
  const arg = expr.args.at(-1);
  if (!Object.hasOwn(checks, name) || arg?.kind !== "literal" || typeof arg.value !== "string") return undefined;
  return succeeds(checks[name]!, arg.value) ? undefined : { offset: arg.offset, name };
}

function succeeds(check: Check, text: string): boolean {
  try {
    return check(text);
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}
