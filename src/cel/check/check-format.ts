/** Checks a constant format and the types of its arguments: `'%d'.format(['a'])`. */

import { type ClauseLetter, describeMismatch, replaceClauses } from "../libraries/format-clauses.ts";
import type { Call, Expr } from "../parse/ast.ts";
import type { Type } from "../values/types.ts";
import { Failure, fail, TypeValue } from "../values/value.ts";
import type { CheckedExpression } from "./checked-expression.ts";

export interface Issue {
  readonly offset: number;
  readonly message: string;
}

const KINDS: Readonly<Record<ClauseLetter, string>> = {
  s: "list map int uint double bool string timestamp bytes duration type null",
  d: "int uint",
  f: "double string",
  e: "double string",
  b: "int uint bool",
  x: "int uint string bytes",
  X: "int uint string bytes",
  o: "int uint",
};

export function checkFormat({ target, args, offset }: Call, checked: CheckedExpression): readonly Issue[] {
  const [list] = args;
  if (target?.kind !== "literal" || typeof target.value !== "string" || list?.kind !== "list") return [];
  const { elements } = list;
  // The position of the argument that does not fit; other problems are those of the call.
  let position = offset;
  try {
    const { count } = replaceClauses(target.value, { size: elements.length, late: true }, ({ letter }, index) => {
      const other = findMismatch(letter, elements[index]!, checked);
      if (other === undefined) return "";
      position = other.offset;
      return fail(describeMismatch(letter, typeName(checked.typeOf(other))));
    });
    if (elements.length <= count) return [];
    const numbers = `(expected ${count}, got ${elements.length})`;
    return [{ offset, message: `too many arguments supplied to string.format ${numbers}` }];
  } catch (error) {
    if (error instanceof Failure) return [{ offset: position, message: error.message }];
    throw error;
  }
}

/** The argument, or a part of it, that the clause does not accept. */
function findMismatch(letter: ClauseLetter, expr: Expr, checked: CheckedExpression): Expr | undefined {
  const { kind } = checked.typeOf(expr);
  if (kind !== "dyn" && !KINDS[letter].split(" ").includes(kind)) return expr;
  if (letter !== "s") return undefined;
  const parts =
    expr.kind === "list"
      ? expr.elements
      : expr.kind === "map"
        ? expr.entries.flatMap(({ key, value }) => [key, value])
        : [];
  for (const part of parts) {
    const other = findMismatch(letter, part, checked);
    if (other !== undefined) return other;
  }
  return undefined;
}

function typeName(type: Type): string {
  return new TypeValue(type).name;
}
