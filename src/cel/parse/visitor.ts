/** Dispatch over the node types of an expression, shared by all passes over the tree. */
import type {
  Call,
  Comprehension,
  Expr,
  Identifier,
  ListLiteral,
  Literal,
  MapLiteral,
  ObjectLiteral,
  Select,
} from "./ast.ts";

/** One method per node type. `context` is passed through unchanged. */
export interface ExprVisitor<Result, Context = void> {
  literal(expr: Literal, context: Context): Result;
  identifier(expr: Identifier, context: Context): Result;
  select(expr: Select, context: Context): Result;
  call(expr: Call, context: Context): Result;
  list(expr: ListLiteral, context: Context): Result;
  map(expr: MapLiteral, context: Context): Result;
  object(expr: ObjectLiteral, context: Context): Result;
  comprehension(expr: Comprehension, context: Context): Result;
}

/** Calls the visitor's method for the type of the node. */
export function visitExpr<Result, Context>(
  visitor: ExprVisitor<Result, Context>,
  expr: Expr,
  context: Context,
): Result {
  switch (expr.kind) {
    case "literal":
      return visitor.literal(expr, context);
    case "identifier":
      return visitor.identifier(expr, context);
    case "select":
      return visitor.select(expr, context);
    case "call":
      return visitor.call(expr, context);
    case "list":
      return visitor.list(expr, context);
    case "map":
      return visitor.map(expr, context);
    case "object":
      return visitor.object(expr, context);
    case "comprehension":
      return visitor.comprehension(expr, context);
    default:
      return expr satisfies never;
  }
}

/** Stands for an undefined result, so that one lookup finds out whether a node was visited. */
const NO_RESULT = Symbol("no result");

/**
 * A pass that computes one result per node. Macros use an argument several times in the expanded tree: computing each
 * node once keeps nested macros from taking exponential time.
 */
export abstract class ExprPass<Result> implements ExprVisitor<Result> {
  readonly #results = new Map<Expr, Result | typeof NO_RESULT>();

  visit(expr: Expr): Result {
    const stored = this.#results.get(expr);
    if (stored !== undefined) return (stored === NO_RESULT ? undefined : stored) as Result;
    const result = this.compute(expr);
    this.#results.set(expr, result === undefined ? NO_RESULT : result);
    return result;
  }

  /** The result of a node that was visited. */
  protected resultOf(expr: Expr): Result | undefined {
    const stored = this.#results.get(expr);
    return stored === NO_RESULT ? undefined : stored;
  }

  protected compute(expr: Expr): Result {
    return visitExpr(this, expr, undefined);
  }

  abstract literal(expr: Literal): Result;
  abstract identifier(expr: Identifier): Result;
  abstract select(expr: Select): Result;
  abstract call(expr: Call): Result;
  abstract list(expr: ListLiteral): Result;
  abstract map(expr: MapLiteral): Result;
  abstract object(expr: ObjectLiteral): Result;
  abstract comprehension(expr: Comprehension): Result;
}
