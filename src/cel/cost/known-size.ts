/** Sizes that are known without a schema. */
import type { Expr } from "../parse/ast.ts";
import { countCharacters } from "../parse/source.ts";
import { isOptional, type Type } from "../values/types.ts";
import { fixed, type Range } from "./range.ts";

/** The size of a literal; undefined for other nodes. */
export function literalSize(expr: Expr): Range | undefined {
  if (expr.kind === "list") return fixed(expr.elements.length);
  if (expr.kind === "map") return fixed(expr.entries.length);
  if (expr.kind !== "literal") return undefined;
  if (typeof expr.value === "string") return fixed(countCharacters(expr.value));
  return fixed(expr.value instanceof Uint8Array ? expr.value.length : 1);
}

export function isScalar(type: Type): boolean {
  if (isOptional(type)) return isScalar(type.parameters[0]!);
  return ["bool", "double", "duration", "int", "timestamp", "uint"].includes(type.kind);
}
