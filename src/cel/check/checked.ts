/** The input and the result of type checking. */

import type { FunctionDeclaration, Overload } from "../functions.ts";
import type { Expr } from "../parse/ast.ts";
import type { Type } from "../values/types.ts";
import type { Value } from "../values/value.ts";

/** The declarations that expressions can refer to. */
export interface CheckerEnvironment {
  readonly variables: ReadonlyMap<string, Type>;
  readonly functions: ReadonlyMap<string, FunctionDeclaration>;
  /** Types by name (`int`, `google.protobuf.Timestamp`) and constants of libraries. */
  readonly constants: ReadonlyMap<string, { readonly type: Type; readonly value: Value }>;
  /** List and map literals can have items of several types; their element type is then dyn. */
  readonly mixedLiterals: boolean;
  /** Type errors are left to evaluation. */
  readonly unchecked: boolean;
}

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
