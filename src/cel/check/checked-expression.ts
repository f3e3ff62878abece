/** The result of type checking. */

import type { Overload } from "../functions.ts";
import type { Expr } from "../parse/ast.ts";
import type { Type } from "../values/types.ts";
import type { Value } from "../values/value.ts";

/** The declaration that a name or a call refers to. */
export type Reference =
  | { readonly kind: "variable"; readonly name: string; readonly local: boolean }
  | { readonly kind: "constant"; readonly value: Value }
  /** `target` is false when the apparent receiver is part of the function's name (`optional.of`). */
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
  /** The type of a variable of the environment. */
  readonly variableType: (name: string) => Type | undefined;
}
