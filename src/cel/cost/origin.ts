/** The origin of values in a schema, and the sizes of literals. */
import type { Expr } from "../parse/ast.ts";
import { countCharacters } from "../parse/source.ts";
import { isOptional, type Type } from "../values/types.ts";
import { fixed, type Range } from "./range.ts";

/** The part of a schema that describes a value. */
export interface Origin {
  readonly path: string;
  readonly type: Type;
}

export function originOfMember(origin: Origin | undefined, name: string): Origin | undefined {
  if (origin?.type.kind === "map") return { path: `${origin.path}.*`, type: origin.type.value };
  const type = origin?.type.kind === "object" ? origin.type.field(name) : undefined;
  return type === undefined ? undefined : { path: `${origin!.path}.${name}`, type };
}

export function originOfItems(origin: Origin | undefined): Origin | undefined {
  if (origin?.type.kind === "list") return { path: `${origin.path}[*]`, type: origin.type.element };
  if (origin?.type.kind === "map") return { path: `${origin.path}.*`, type: origin.type.value };
  return undefined;
}

export function originOfKeys(origin: Origin | undefined): Origin | undefined {
  return origin?.type.kind === "map" ? { path: `${origin.path}.*`, type: origin.type.key } : undefined;
}

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
