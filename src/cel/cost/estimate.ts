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
import { type EstimatedArg, estimateCall } from "./call-estimate.ts";
import { isScalar, literalSize, type Origin, originOfItems, originOfKeys, originOfMember } from "./origin.ts";
import { add, fixed, multiply, type Range, union, unknownRange } from "./range.ts";
import { LIST_COST, MAP_COST, OBJECT_COST } from "./runtime-cost.ts";

/** `max` can be `Infinity`. */
export interface CostEstimate {
  readonly min: number;
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
  readonly origin: Origin | undefined;
  readonly size: Range | undefined;
  readonly entry: EntrySize | undefined;
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

/** The variable that has the whole value. */
const ROOT = "self";

class Estimator extends ExprPass<Range> {
  readonly unbounded = new Map<string, UnboundedPart>();
  readonly #checked: CheckedExpression;
  /** The path of the part that is assumed to be bounded. */
  readonly #bounded: string | undefined;
  readonly #sizes = new Map<Expr, Range>();
  readonly #entries = new Map<Expr, EntrySize>();
  readonly #origins = new Map<Expr, Origin>();
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
    this.#setOrigin(expr, this.#originOfName(expr.name));
    return fixed(1);
  }

  object(expr: ObjectLiteral): Range {
    return this.#sum(expr.fields.map(({ value }) => value)).plus(OBJECT_COST);
  }

  #sum(exprs: readonly Expr[]): { plus: (cost: number) => Range } {
    const sum = exprs.reduce((total, expr) => add(total, this.visit(expr)), fixed(0));
    return { plus: (cost) => add(sum, fixed(cost)) };
  }

  #originOfName(name: string): Origin | undefined {
    const local = this.#locals.findLast((each) => each.name === name);
    if (local !== undefined) return local.origin;
    const type = this.#checked.variableType(name);
    if (type !== undefined) return { path: name, type };
    // Kubernetes takes the size of other names, such as that of the type `int`, from the root of the schema.
    const root = this.#checked.variableType(ROOT);
    return root === undefined ? undefined : { path: ROOT, type: { ...root, maxElements: root.maxElements ?? 0 } };
  }

  select(expr: Select): Range {
    if (this.#checked.referenceOf(expr) !== undefined) return fixed(1);
    const operand = this.visit(expr.operand);
    if (expr.test) return operand;
    this.#setOrigin(expr, originOfMember(this.#originOf(expr.operand), expr.field));
    const { kind } = this.#checked.typeOf(expr.operand);
    return kind === "map" || kind === "object" ? add(operand, fixed(1)) : operand;
  }

  call(expr: Call): Range {
    const reference = this.#checked.referenceOf(expr);
    if (reference?.kind !== "call") return fixed(0);
    const [first] = expr.args;
    if (reference.name === "dyn" && first !== undefined) {
      const cost = this.visit(first);
      this.#copySizes(expr, first);
      return add(cost, fixed(1));
    }
    const argCosts = expr.args.map((arg) => this.visit(arg));
    const target = reference.target ? expr.target : undefined;
    const targetCost = target === undefined ? fixed(0) : this.visit(target);
    const estimate = this.#overloads(expr, target, argCosts);
    this.#setElementSize(
      expr,
      reference.overloads.map(({ id }) => id),
    );
    if (estimate.size !== undefined && !this.#sizes.has(expr)) this.#sizes.set(expr, estimate.size);
    return add(targetCost, estimate.cost);
  }

  /** The union of the costs of all overloads that the call can resolve to. */
  #overloads(expr: Call, target: Expr | undefined, argCosts: readonly Range[]): { cost: Range; size?: Range } {
    const reference = this.#checked.referenceOf(expr);
    if (reference?.kind !== "call") return { cost: fixed(0) };
    const described = expr.args.map((arg) => this.#describe(arg));
    const whole = target === undefined ? undefined : this.#describe(target);
    const argSum = argCosts.reduce(add, fixed(0));
    if (reference.name === "_&&_" || reference.name === "_||_") {
      const [left = fixed(0), right = fixed(0)] = argCosts;
      return { cost: { min: left.min, max: left.max + right.max } };
    }
    if (reference.name === "_?_:_") return this.#conditional(expr, argCosts);
    if (reference.name === "_+_") this.#setUnionEntrySize(expr);
    let cost: Range | undefined;
    let size: Range | undefined;
    const ids = reference.overloads.length === 0 ? [reference.name] : reference.overloads.map(({ id }) => id);
    for (const id of ids) {
      const estimate = estimateCall(reference.name, id, whole, described);
      cost = cost === undefined ? estimate.cost : union(cost, estimate.cost);
      if (estimate.size !== undefined) size = size === undefined ? estimate.size : union(size, estimate.size);
    }
    return { cost: add(cost ?? fixed(1), argSum), ...(size && { size }) };
  }

  #conditional(expr: Call, argCosts: readonly Range[]): { cost: Range; size?: Range } {
    const [condition = fixed(0), yes = fixed(0), no = fixed(0)] = argCosts;
    const [, first, second] = expr.args;
    const [a, b] = [this.#entryOf(first!), this.#entryOf(second!)];
    if (a !== undefined && b !== undefined) this.#entries.set(expr, unionEntrySizes(a, b));
    const size = union(this.#sizeOrUnknown(first!), this.#sizeOrUnknown(second!));
    return { cost: add(condition, union(yes, no)), size };
  }

  #setUnionEntrySize(expr: Call): void {
    const [first, second] = expr.args;
    const [a, b] = [this.#entryOf(first!), this.#entryOf(second!)];
    if (a !== undefined && b !== undefined) this.#entries.set(expr, unionEntrySizes(a, b));
  }

  /** Sets size and origin of `a[i]` to those of the elements of `a`. */
  #setElementSize(expr: Call, ids: readonly string[]): void {
    const [container] = expr.args;
    for (const id of ids) {
      if (id !== "index_list" && id !== "index_map") continue;
      const size = this.#entryOf(container!)?.value;
      if (size !== undefined) this.#sizes.set(expr, size);
      this.#setOrigin(expr, originOfItems(this.#originOf(container!)));
    }
  }

  #describe(expr: Expr): EstimatedArg {
    const type = this.#checked.typeOf(expr);
    const origin = this.#originOf(expr);
    const element = originOfItems(origin);
    return {
      type,
      expr,
      size: this.#sizeOf(expr),
      elementSize: () => (element === undefined ? unknownRange : (this.#originSize(element) ?? unknownRange)),
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
    this.#locals.push({
      name: bound,
      origin: this.#originOf(expr.init),
      size: this.#sizeOf(expr.init),
      entry: this.#entryOf(expr.init),
    });
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

  #declareLoopVariables(expr: Comprehension): void {
    const origin = this.#originOf(expr.range);
    const entry = this.#entryOf(expr.range);
    const isList = (entry?.kind ?? this.#checked.typeOf(expr.range).kind) === "list";
    const keyed: Local = {
      name: expr.variable,
      origin: isList ? undefined : originOfKeys(origin),
      size: entry?.key,
      entry: undefined,
    };
    const valued: Local = { name: expr.variable, origin: originOfItems(origin), size: entry?.value, entry: undefined };
    if (expr.variable2 === undefined) this.#locals.push(isList ? valued : keyed);
    else this.#locals.push(keyed, { ...valued, name: expr.variable2 });
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

  #setOrigin(expr: Expr, origin: Origin | undefined): void {
    if (origin !== undefined) this.#origins.set(expr, origin);
  }

  #originOf(expr: Expr): Origin | undefined {
    if (expr.kind === "identifier") return this.#originOfName(expr.name);
    return this.#origins.get(expr);
  }

  #entryOf(expr: Expr): EntrySize | undefined {
    const set = this.#entries.get(expr);
    if (set !== undefined || expr.kind !== "identifier") return set;
    return this.#locals.findLast(({ name }) => name === expr.name)?.entry;
  }

  #sizeOrUnknown(expr: Expr): Range {
    return this.#sizeOf(expr) ?? unknownRange;
  }

  #sizeOf(expr: Expr): Range | undefined {
    const set = this.#sizes.get(expr) ?? literalSize(expr);
    if (set !== undefined) return set;
    const origin = this.#originOf(expr);
    const declared = origin === undefined ? undefined : this.#originSize(origin);
    if (declared !== undefined) return declared;
    if (isScalar(this.#checked.typeOf(expr))) return fixed(1);
    if (expr.kind !== "identifier") return undefined;
    return this.#locals.findLast(({ name }) => name === expr.name)?.size;
  }

  /** The size from the schema. */
  #originSize({ path, type }: Origin): Range | undefined {
    if (type.maxElements === undefined) return undefined;
    if (type.unbounded === undefined) return { min: 0, max: type.maxElements };
    if (path === this.#bounded) return { min: 0, max: 1 };
    this.unbounded.set(path, { path, bound: type.unbounded });
    return { min: 0, max: type.maxElements };
  }
}

function unionEntrySizes(a: EntrySize, b: EntrySize): EntrySize {
  return { kind: a.kind, key: union(a.key, b.key), value: union(a.value, b.value) };
}
