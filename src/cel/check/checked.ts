/** What checking an expression needs, and what it finds. */

import type { FunctionDeclaration, Overload } from "../functions.ts";
import type { Expr } from "../parse/ast.ts";
import type { Type } from "../values/types.ts";
import type { Value } from "../values/value.ts";

/** What the checker needs to know of the world. */
export interface CheckerEnvironment {
  readonly variables: ReadonlyMap<string, Type>;
  readonly functions: ReadonlyMap<string, FunctionDeclaration>;
  /** Types by name (`int`, `google.protobuf.Timestamp`) and constants of libraries. */
  readonly constants: ReadonlyMap<string, { readonly type: Type; readonly value: Value }>;
  /** Items of one literal may have several types: it is then one of dyn. */
  readonly mixedLiterals: boolean;
  /** What does not fit is left to fail when it is evaluated. */
  readonly unchecked: boolean;
}

/** What a name or a call turned out to mean. */
export type Reference =
  | { readonly kind: "variable"; readonly name: string; readonly local: boolean }
  | { readonly kind: "constant"; readonly value: Value }
  /** `target` is false when what looked like a value was part of the function's name. */
  | {
      readonly kind: "call";
      readonly name: string;
      readonly overloads: readonly Overload[];
      readonly target: boolean;
    };

export interface CheckedExpression {
  readonly expr: Expr;
  readonly typeOf: (expr: Expr) => Type;
  readonly referenceOf: (expr: Expr) => Reference | undefined;
  readonly references: () => Iterable<Reference>;
  /** Of a variable of the environment. */
  readonly variableType: (name: string) => Type | undefined;
}
