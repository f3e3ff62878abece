/** The syntax tree of an expression after macro expansion. */

export type Expr = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | ObjectLiteral | Comprehension;

interface Node {
  /** The position of errors in this node: the operator, the dot, the opening bracket. */
  readonly offset: number;
}

/** A literal in the representation of `values/value.ts`, except for uint, which has a flag. */
export interface Literal extends Node {
  readonly kind: "literal";
  readonly value: bigint | number | string | boolean | null | Uint8Array;
  readonly unsigned?: boolean;
}

/** A name; a leading dot skips local variables. */
export interface Identifier extends Node {
  readonly kind: "identifier";
  readonly name: string;
}

export interface Select extends Node {
  readonly kind: "select";
  readonly operand: Expr;
  readonly field: string;
  /** `has(a.b)`. */
  readonly test: boolean;
}

/** Operators are calls too: `_+_`, `!_`, `_?_:_`, `_[_]`, `_[?_]`, `_?._`. */
export interface Call extends Node {
  readonly kind: "call";
  readonly name: string;
  readonly target?: Expr;
  readonly args: readonly Expr[];
}

export interface ListLiteral extends Node {
  readonly kind: "list";
  readonly elements: readonly Expr[];
  /** Indexes of the optional elements (`?x`). */
  readonly optional: ReadonlySet<number>;
}

export interface MapLiteral extends Node {
  readonly kind: "map";
  readonly entries: readonly MapEntry[];
}

export interface MapEntry {
  readonly key: Expr;
  readonly value: Expr;
  readonly optional: boolean;
}

export interface ObjectLiteral extends Node {
  readonly kind: "object";
  readonly type: string;
  readonly fields: readonly ObjectField[];
}

export interface ObjectField extends Node {
  readonly name: string;
  readonly value: Expr;
  readonly optional: boolean;
}

/**
 * A loop over a list or map, to which all iterating macros expand. Types and cost estimates use the general
 * comprehension; evaluation uses `loop`, the specific kind of loop.
 */
export interface Comprehension extends Node {
  readonly kind: "comprehension";
  readonly range: Expr;
  readonly variable: string;
  /** Present in loops with two variables: index and element, key and value. */
  readonly variable2?: string;
  readonly init: Expr;
  readonly condition: Expr;
  readonly step: Expr;
  readonly result: Expr;
  readonly loop: Loop;
}

export type Loop =
  | { readonly kind: "all" | "exists" | "existsOne"; readonly predicate: Expr }
  | { readonly kind: "list" | "map" | "entries"; readonly filter?: Expr; readonly transform: Expr }
  /** Not a loop: binds `init` to a name within `result` (`optMap`). */
  | { readonly kind: "bind"; readonly name: string };

/** The accumulator variable of comprehensions, which expressions cannot name. */
export const ACCUMULATOR = "@result";

export function literal(offset: number, value: Literal["value"]): Literal {
  return { kind: "literal", offset, value };
}

export function identifier(offset: number, name: string): Identifier {
  return { kind: "identifier", offset, name };
}

export function call(offset: number, name: string, args: readonly Expr[], target?: Expr): Call {
  return target === undefined ? { kind: "call", offset, name, args } : { kind: "call", offset, name, args, target };
}

/** `a.b.c` when the expression is a chain of names. */
export function qualifiedName(expr: Expr): string | undefined {
  if (expr.kind === "identifier") return expr.name;
  if (expr.kind !== "select" || expr.test) return undefined;
  const prefix = qualifiedName(expr.operand);
  return prefix === undefined ? undefined : `${prefix}.${expr.field}`;
}

/** The direct subexpressions, each once. */
export function children(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case "literal":
    case "identifier":
      return [];
    case "select":
      return [expr.operand];
    case "call":
      return expr.target === undefined ? expr.args : [expr.target, ...expr.args];
    case "list":
      return expr.elements;
    case "map":
      return expr.entries.flatMap(({ key, value }) => [key, value]);
    case "object":
      return expr.fields.map(({ value }) => value);
    case "comprehension":
      return [expr.range, expr.init, expr.condition, expr.step, expr.result];
    default:
      return expr satisfies never;
  }
}
