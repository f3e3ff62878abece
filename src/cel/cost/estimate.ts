/**
 * Estimates the cost of an expression before evaluation from the maximum sizes of values, which schemas bound
 * (`adapter/schema-type.ts`). Uses the figures of cel-go and Kubernetes, so that both accept the same rules.
 */

import type { CheckedExpression } from "../check/checked-expression.ts";
import {
  ACCUMULATOR,
  type Call,
  type Comprehension,
  type Expr,
  type Identifier,
  type ListLiteral,
  type MapLiteral,
  type ObjectLiteral,
  type Select,
} from "../parse/ast.ts";
import { ExprPass } from "../parse/visitor.ts";
import type { Type } from "../values/types.ts";
import { type CallEstimate, type EstimatedArg, estimateCall } from "./call-estimate.ts";
import { isScalar, literalSize } from "./known-size.ts";
import { add, fixed, multiply, type Range, union, unknownRange } from "./range.ts";
import { LIST_COST, MAP_COST, OBJECT_COST } from "./runtime-cost.ts";
import { extend, formatPath, typeAt, ValuePath } from "./value-path.ts";

export interface CostEstimate {
  readonly min: number;
  /** 2^64 without a bound. */
  readonly max: number;
  /** The unbounded lists, maps and strings that determine the cost, the most expensive first. */
  readonly unbounded: readonly UnboundedPart[];
}

export interface UnboundedPart {
  /** `self.spec.items`, `self.names[*]`, `self.labels.*`. */
  readonly path: string;
  readonly bound: "maxItems" | "maxLength" | "maxProperties";
}

/** Sizes of the keys and values of a list or map that the expression creates. */
interface EntrySize {
  readonly kind: "list" | "map";
  readonly key: Range;
  readonly value: Range;
}

interface Local {
  readonly name: string;
  readonly path: ValuePath | undefined;
  readonly size?: Range | undefined;
  readonly entry?: EntrySize | undefined;
}

export function estimateCost(checked: CheckedExpression): CostEstimate {
  const estimator = new Estimator(checked);
  const { min, max } = estimator.visit(checked.expr);
  // Ranks unbounded parts by the cost of the expression if they had a bound.
  const parts = [...estimator.unbounded.values()].slice(0, UNBOUNDED_MAX);
  const ranked = parts
    .map((part) => ({ part, bounded: new Estimator(checked, part.path).visit(checked.expr).max }))
    .filter(({ bounded }) => bounded < max)
    .sort((a, b) => a.bounded - b.bounded);
  return { min, max, unbounded: ranked.map(({ part }) => part) };
}

/** The maximum number of ranked parts. */
const UNBOUNDED_MAX = 16;

/** The variable that has the whole value. Kubernetes takes any first step of a path for it. */
const ROOT = "self";

class Estimator extends ExprPass<Range> {
  readonly unbounded = new Map<string, UnboundedPart>();
  readonly #checked: CheckedExpression;
  /** The path of the part that is assumed to be bounded. */
  readonly #bounded: string | undefined;
  readonly #sizes = new Map<Expr, Range>();
  readonly #entries = new Map<Expr, EntrySize>();
  readonly #paths = new Map<Expr, ValuePath>();
  readonly #locals: Local[] = [];

  constructor(checked: CheckedExpression, bounded?: string) {
    super();
    this.#checked = checked;
    this.#bounded = bounded;
  }

  literal(): Range {
    return fixed(0);
  }

  identifier(expr: Identifier): Range {
    const local = this.#localOf(expr.name);
    if (local === undefined) this.#paths.set(expr, ValuePath.of(expr.name));
    return fixed(1);
  }

  object(expr: ObjectLiteral): Range {
    return this.#sum(expr.fields.map(({ value }) => value)).plus(OBJECT_COST);
  }

  #sum(exprs: readonly Expr[]): { plus: (cost: number) => Range } {
    const sum = exprs.reduce((total, expr) => add(total, this.visit(expr)), fixed(0));
    return { plus: (cost) => add(sum, fixed(cost)) };
  }

  select(expr: Select): Range {
    if (this.#checked.referenceOf(expr) !== undefined) {
      this.#paths.set(expr, ValuePath.of(expr.field));
      return fixed(1);
    }
    const operand = this.visit(expr.operand);
    if (expr.test) return operand;
    this.#paths.set(expr, extend(this.#pathOf(expr.operand), expr.field));
    const { kind } = this.#checked.typeOf(expr.operand);
    return kind === "map" || kind === "object" || kind === "parameter" ? add(operand, fixed(1)) : operand;
  }

  call(expr: Call): Range {
    const reference = this.#checked.referenceOf(expr);
    const [first] = expr.args;
    if (reference?.kind === "call" && reference.name === "dyn" && first !== undefined) {
      const cost = this.visit(first);
      this.#copySizes(expr, first);
      return add(cost, fixed(1));
    }
    const visited = expr.args.map((arg) => ({ cost: this.visit(arg), arg: this.#describe(arg) }));
    if (reference?.kind !== "call") return fixed(0);
    const argSum = visited.reduce((sum, { cost }) => add(sum, cost), fixed(0));
    const target = reference.target ? expr.target : undefined;
    const targetCost = target === undefined ? fixed(0) : this.visit(target);
    const whole = target === undefined ? undefined : this.#describe(target);
    const args = visited.map(({ arg }) => arg);
    const special = this.#specialCost(
      expr,
      reference.name,
      visited.map(({ cost }) => cost),
    );
    let cost: Range | undefined;
    let size: Range | undefined;
    const ids = reference.overloads.length === 0 ? [reference.name] : reference.overloads.map(({ id }) => id);
    for (const id of ids) {
      const estimate = special ?? addCost(estimateCall(reference.name, id, whole, args), argSum);
      cost = cost === undefined ? estimate.cost : union(cost, estimate.cost);
      if (estimate.size !== undefined) size = size === undefined ? estimate.size : union(size, estimate.size);
      if (id === "index_list" || id === "index_map") {
        size = this.#entryOf(first!)?.value;
        this.#paths.set(expr, extend(this.#pathOf(first!), id === "index_list" ? "@items" : "@values"));
      }
      size ??= this.#sizeOf(expr);
    }
    if (size !== undefined) this.#sizes.set(expr, size);
    return add(targetCost, cost!);
  }

  /** Calls that evaluate only some of their arguments, or whose result has entries of known sizes. */
  #specialCost(expr: Call, name: string, costs: readonly Range[]): CallEstimate | undefined {
    const [condition = fixed(0), yes = fixed(0), no = fixed(0)] = costs;
    const [, first, second] = expr.args;
    switch (name) {
      case "_&&_":
      case "_||_":
        return { cost: { min: condition.min, max: add(condition, yes).max } };
      case "_?_:_":
        this.#uniteEntries(expr, first!, second!);
        return {
          cost: add(condition, union(yes, no)),
          size: union(this.#sizeOrUnknown(first!), this.#sizeOrUnknown(second!)),
        };
      case "_+_":
        this.#uniteEntries(expr, expr.args[0]!, first!);
        return undefined;
      default:
        return undefined;
    }
  }

  #uniteEntries(to: Expr, first: Expr, second: Expr): void {
    const [a, b] = [this.#entryOf(first), this.#entryOf(second)];
    if (a !== undefined && b !== undefined) this.#entries.set(to, uniteEntrySizes(a, b));
  }

  #describe(expr: Expr): EstimatedArg {
    const size = this.#sizeOf(expr);
    const path = this.#pathOf(expr);
    return {
      type: this.#checked.typeOf(expr),
      expr,
      size,
      elementSize: () => (path === undefined ? undefined : this.#sizeAt(path.copyWith("@items"))) ?? unknownRange,
    };
  }

  list(expr: ListLiteral): Range {
    const cost = this.#sum(expr.elements).plus(LIST_COST);
    const value = this.#unionOf(expr.elements);
    this.#entries.set(expr, { kind: "list", key: fixed(1), value });
    return cost;
  }

  map(expr: MapLiteral): Range {
    const cost = this.#sum(expr.entries.flatMap(({ key, value }) => [key, value])).plus(MAP_COST);
    const key = this.#unionOf(expr.entries.map((entry) => entry.key));
    const value = this.#unionOf(expr.entries.map((entry) => entry.value));
    this.#entries.set(expr, { kind: "map", key, value });
    return cost;
  }

  #unionOf(exprs: readonly Expr[]): Range {
    const sizes = exprs.map((expr) => this.#sizeOrUnknown(expr));
    return sizes.length === 0 ? fixed(0) : sizes.reduce(union);
  }

  comprehension(expr: Comprehension): Range {
    const start = add(this.visit(expr.range), this.visit(expr.init));
    const before = this.#locals.length;
    const bound = expr.loop.kind === "bind" ? expr.loop.name : ACCUMULATOR;
    const entry = this.#entryOf(expr.init);
    this.#locals.push({ name: bound, path: this.#pathOf(expr.init), size: this.#sizeOf(expr.init), entry });
    if (expr.loop.kind === "bind") {
      const cost = add(start, this.visit(expr.result));
      this.#locals.length = before;
      this.#copySizes(expr, expr.result);
      return cost;
    }
    const inner = this.#locals.length;
    this.#declareLoopVariables(expr);
    const each = add(this.visit(expr.condition), this.visit(expr.step));
    this.#locals.length = inner;
    const result = this.visit(expr.result);
    this.#locals.length = before;
    const count = this.#sizeOrUnknown(expr.range);
    this.#setLoopSizes(expr, count);
    return add(add(start, result), multiply(count, each));
  }

  #declareLoopVariables({ range, variable, variable2 }: Comprehension): void {
    const path = this.#pathOf(range);
    const entry = this.#entryOf(range);
    const isList = (entry?.kind ?? this.#checked.typeOf(range).kind) === "list";
    const declare = (name: string, step: string, size: Range | undefined): void => {
      this.#locals.push({ name, path: extend(path, step), size });
    };
    if (variable2 !== undefined) {
      declare(variable, isList ? "@indices" : "@keys", entry?.key);
      declare(variable2, isList ? "@items" : "@values", entry?.value);
    } else if (isList) declare(variable, "@items", entry?.value);
    else declare(variable, "@keys", entry?.key);
  }

  #setLoopSizes(expr: Comprehension, count: Range): void {
    if (expr.init.kind === "literal") {
      this.#sizes.set(expr, fixed(1));
      return;
    }
    this.#sizes.set(expr, count);
    const entry = this.#entryOf(expr.step);
    if (entry !== undefined) this.#entries.set(expr, entry);
  }

  #copySizes(to: Expr, from: Expr): void {
    const size = this.#sizeOf(from);
    const entry = this.#entryOf(from);
    if (size !== undefined) this.#sizes.set(to, size);
    if (entry !== undefined) this.#entries.set(to, entry);
  }

  #localOf(name: string): Local | undefined {
    return this.#locals.findLast((local) => local.name === name);
  }

  #pathOf(expr: Expr): ValuePath | undefined {
    const local = expr.kind === "identifier" ? this.#localOf(expr.name) : undefined;
    return local === undefined ? this.#paths.get(expr) : local.path;
  }

  #entryOf(expr: Expr): EntrySize | undefined {
    const set = this.#entries.get(expr);
    return set !== undefined || expr.kind !== "identifier" ? set : this.#localOf(expr.name)?.entry;
  }

  #sizeOrUnknown(expr: Expr): Range {
    return this.#sizeOf(expr) ?? unknownRange;
  }

  #sizeOf(expr: Expr): Range | undefined {
    const set = this.#sizes.get(expr) ?? literalSize(expr);
    if (set !== undefined) return set;
    const path = this.#pathOf(expr);
    const declared = path === undefined ? undefined : this.#sizeAt(path);
    if (declared !== undefined) {
      // Kept, since the path may change (`ValuePath`).
      this.#sizes.set(expr, declared);
      return declared;
    }
    if (isScalar(this.#checked.typeOf(expr))) return fixed(1);
    return expr.kind === "identifier" ? this.#localOf(expr.name)?.size : undefined;
  }

  /** The size from the schema. */
  #sizeAt(path: ValuePath): Range | undefined {
    const steps = path.steps();
    const name = this.#checked.variableType(ROOT) === undefined ? (steps[0] ?? "") : ROOT;
    const root = this.#checked.variableType(name);
    const type = root === undefined ? undefined : typeAt(root, steps);
    return type === undefined ? undefined : this.#sizeOfType(type, formatPath(name, steps));
  }

  #sizeOfType({ maxElements, unbounded }: Type, path: string): Range | undefined {
    if (maxElements === undefined) return undefined;
    if (unbounded !== undefined && path === this.#bounded) return { min: 0, max: 1 };
    if (unbounded !== undefined) this.unbounded.set(path, { path, bound: unbounded });
    return { min: 0, max: maxElements };
  }
}

function addCost(estimate: CallEstimate, cost: Range): CallEstimate {
  return { ...estimate, cost: add(estimate.cost, cost) };
}

function uniteEntrySizes(a: EntrySize, b: EntrySize): EntrySize {
  return { kind: a.kind, key: union(a.key, b.key), value: union(a.value, b.value) };
}
