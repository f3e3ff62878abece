/**
 * Plans a checked expression as closures, one per node. Costs follow cel-go's interpreter: a variable or a field access
 * 1, a new list 10, a new map 30, a call 1 unless `cost/runtime-cost.ts` has a cost for it; constants, `&&`, `||` and
 * `?:` 0.
 */

import type { CheckedExpression } from "../check/checked-expression.ts";
import { LIST_COST, MAP_COST, OBJECT_COST, runtimeCost, TRAVERSAL } from "../cost/runtime-cost.ts";
import { compileCached } from "../libraries/regex.ts";
import type {
  Call,
  Comprehension,
  Expr,
  Identifier,
  ListLiteral,
  MapLiteral,
  ObjectLiteral,
  Select,
} from "../parse/ast.ts";
import { type ExprVisitor, visitExpr } from "../parse/visitor.ts";
import { EntryMap } from "../values/entry-map.ts";
import { ObjectValue } from "../values/object-value.ts";
import {
  ArrayList,
  comparisonCounter,
  equal,
  Failure,
  fail,
  List,
  Optional,
  sizeForCost,
  type Value,
} from "../values/value.ts";
import { ConstantFolder, InstantiationError, instantiate } from "./constant-folding.ts";
import { type Frame, type Interpretable, planRead } from "./frame.ts";
import { type LoopParts, planLoop } from "./loops.ts";
import { elementOf, hasMember, memberOf, optionalElement, optionalMember } from "./member-access.ts";
import { createDispatcher, UNNAMED } from "./overload-dispatch.ts";

export interface Plan {
  readonly run: Interpretable;
  /** The variables in the order of their slots, which are before those of local variables. */
  readonly variables: readonly string[];
  readonly slots: number;
}

export function planEvaluation(checked: CheckedExpression): Plan {
  const builder = new Planner(checked);
  const run = builder.plan(checked.expr);
  return { run, variables: [...builder.variables.keys()], slots: builder.slots };
}

class Planner implements ExprVisitor<Interpretable, boolean> {
  readonly variables = new Map<string, number>();
  readonly #checked: CheckedExpression;
  readonly #constants: ConstantFolder;
  readonly #plans = new Map<Expr, Interpretable>();
  readonly #freePlans = new Map<Expr, Interpretable>();
  readonly #locals: (readonly [string, number])[] = [];
  #localSlots = 0;

  constructor(checked: CheckedExpression) {
    this.#checked = checked;
    this.#constants = new ConstantFolder(checked);
    // Variables have the first slots, so that they are counted before local variables.
    for (const reference of checked.references()) {
      if (reference.kind !== "variable" || reference.local || this.variables.has(reference.name)) continue;
      this.variables.set(reference.name, this.variables.size);
    }
  }

  get slots(): number {
    return this.variables.size + this.#localSlots;
  }

  /**
   * `free` is true for the branches of a conditional, whose first attribute costs nothing. Plans each node once, since
   * macros use an argument several times.
   */
  plan(expr: Expr, free = false): Interpretable {
    const plans = free ? this.#freePlans : this.#plans;
    const plan = plans.get(expr) ?? this.#planNode(expr, free);
    plans.set(expr, plan);
    return plan;
  }

  #planNode(expr: Expr, free: boolean): Interpretable {
    const constant = this.#constants.visit(expr);
    if (constant !== undefined) return () => constant;
    return visitExpr(this, expr, free);
  }

  literal(): never {
    return fail("literals are constants");
  }

  identifier(expr: Identifier, free: boolean): Interpretable {
    return this.#planVariable(expr, expr.name, free);
  }

  #planVariable(expr: Identifier | Select, name: string, free: boolean): Interpretable {
    const reference = this.#checked.referenceOf(expr);
    if (reference?.kind !== "variable") return () => fail(`undeclared reference to '${name}'`);
    const get = planRead(this.#slotOf(reference.name, reference.local), reference.name);
    if (free) return get;
    return (frame) => {
      frame.charge(1);
      return get(frame);
    };
  }

  #slotOf(name: string, local: boolean): number {
    const slot = local ? this.#locals.findLast(([each]) => each === name)?.[1] : this.variables.get(name);
    return slot ?? fail(`undeclared reference to '${name}'`);
  }

  select(expr: Select, free: boolean): Interpretable {
    if (this.#checked.referenceOf(expr) !== undefined) return this.#planVariable(expr, expr.field, free);
    const { operand, cost } = this.#operand(expr.operand, free);
    const { field } = expr;
    if (expr.test) {
      return (frame) => {
        const value = operand(frame);
        if (cost > 1) frame.charge(cost - 1);
        return hasMember(value, field);
      };
    }
    return (frame) => {
      const value = operand(frame);
      frame.charge(cost);
      return memberOf(value, field);
    };
  }

  /** The operand of a field or index access; the first access to a computed value costs one more. */
  #operand(expr: Expr, free: boolean): { operand: Interpretable; cost: number } {
    const isAttribute = this.#isAttribute(expr);
    return { operand: this.plan(expr, isAttribute && free), cost: isAttribute || free ? 1 : 2 };
  }

  /** Variables and accesses to fields and elements, which cel-go calls attributes. */
  #isAttribute(expr: Expr): boolean {
    if (this.#constants.visit(expr) !== undefined) return false;
    if (expr.kind === "identifier") return true;
    if (expr.kind === "select") return !expr.test;
    return expr.kind === "call" && ["_[_]", "_[?_]", "_?._", "_?_:_"].includes(expr.name);
  }

  call(expr: Call, free: boolean): Interpretable {
    const [first, second, third] = expr.args;
    switch (expr.name) {
      case "_&&_":
        return this.#logic(this.plan(first!), this.plan(second!), false);
      case "_||_":
        return this.#logic(this.plan(first!), this.plan(second!), true);
      case "_?_:_":
        return planConditional(this.plan(first!), this.plan(second!, true), this.plan(third!, true));
      case "_[_]":
        return this.#index(expr, free, elementOf);
      case "_[?_]":
        return this.#index(expr, free, optionalElement);
      case "_?._":
        return this.#index(expr, free, (value, name) => optionalMember(value, name as string));
      case "_==_":
        return this.#equality(first!, second!, true);
      case "_!=_":
        return this.#equality(first!, second!, false);
      default:
        return this.#optionalOr(expr) ?? this.#function(expr);
    }
  }

  /** One operand can determine the result even if the other fails. */
  #logic(left: Interpretable, right: Interpretable, decisive: boolean): Interpretable {
    return (frame) => {
      const first = evaluateBool(left, frame);
      if (first === decisive) return decisive;
      const second = evaluateBool(right, frame);
      if (second === decisive) return decisive;
      if (first instanceof Failure) throw first;
      if (second instanceof Failure) throw second;
      return !decisive;
    };
  }

  #index(expr: Call, free: boolean, step: (value: Value, index: Value) => Value): Interpretable {
    const [target, key] = expr.args;
    const { operand, cost } = this.#operand(target!, free);
    if (this.#constants.visit(key!) === null) throw new InstantiationError("invalid qualifier type: types.Null");
    const index = this.plan(key!, this.#isAttribute(key!));
    return (frame) => {
      const value = operand(frame);
      const at = index(frame);
      frame.charge(cost);
      return step(value, at);
    };
  }

  #equality(first: Expr, second: Expr, wanted: boolean): Interpretable {
    const left = this.plan(first);
    const right = this.plan(second);
    return (frame) => {
      const a = left(frame);
      const b = right(frame);
      frame.charge(Math.ceil(Math.min(sizeForCost(a), sizeForCost(b)) * TRAVERSAL));
      const before = comparisonCounter.parts;
      const same = equal(a, b);
      frame.chargeComparisons(comparisonCounter.parts - before);
      return same === wanted;
    };
  }

  /** `a.or(b)` and `a.orValue(b)` evaluate `b` only when `a` is none. */
  #optionalOr(expr: Call): Interpretable | undefined {
    const reference = this.#checked.referenceOf(expr);
    const [alternative] = expr.args;
    if (reference?.kind !== "call" || !reference.target || alternative === undefined) return undefined;
    if (expr.name !== "or" && expr.name !== "orValue") return undefined;
    const target = this.plan(expr.target!);
    const other = this.plan(alternative);
    const whole = expr.name === "or";
    return (frame) => {
      const value = target(frame);
      if (!(value instanceof Optional)) return fail("no such overload");
      if (value.value !== undefined) return whole ? value : value.value;
      const fallback = other(frame);
      return whole && !(fallback instanceof Optional) ? fail("no such overload") : fallback;
    };
  }

  #function(expr: Call): Interpretable {
    const reference = this.#checked.referenceOf(expr);
    if (reference?.kind !== "call") return () => fail(`undeclared reference to '${expr.name}'`);
    const membership = reference.name === "@in" ? this.#constantMembership(expr) : undefined;
    if (membership !== undefined) return membership;
    const operands = reference.target ? [expr.target!, ...expr.args] : expr.args;
    const hasPattern = this.#checkPattern(reference.name, operands);
    const args = operands.map((arg) => this.plan(arg));
    const choose = createDispatcher(hasPattern ? UNNAMED : reference.name, reference.overloads);
    const costs = new Map(reference.overloads.map(({ id }) => [id, runtimeCost(reference.name, id)]));
    return (frame) => {
      const values = args.map((arg) => arg(frame));
      const overload = choose(values);
      const cost = costs.get(overload.id);
      if (cost?.before !== undefined) frame.charge(cost.before(values));
      else if (cost === undefined) frame.charge(1);
      const before = comparisonCounter.parts;
      const result = (overload.call as (...args: readonly Value[]) => Value)(...values);
      frame.chargeComparisons(comparisonCounter.parts - before);
      if (cost?.after !== undefined) frame.charge(cost.after(result));
      return result;
    };
  }

  /** cel-go compiles constant patterns with the program. Returns whether there is one. */
  #checkPattern(name: string, [, operand]: readonly Expr[]): boolean {
    const pattern = PATTERN_FUNCTIONS.has(name) && operand !== undefined ? this.#constants.visit(operand) : undefined;
    if (typeof pattern !== "string") return false;
    instantiate(() => compileCached(pattern));
    return true;
  }

  /** `x in ["a", "b"]`: a set lookup without cost. */
  #constantMembership(expr: Call): Interpretable | undefined {
    const [item, list] = expr.args;
    const values = this.#constants.visit(list!);
    if (!(values instanceof List)) return undefined;
    const texts = new Set<Value>();
    for (const value of values) {
      if (typeof value !== "string") return undefined;
      texts.add(value);
    }
    const run = this.plan(item!);
    return (frame) => texts.has(run(frame));
  }

  list(expr: ListLiteral): Interpretable {
    const elements = expr.elements.map((element) => this.plan(element));
    const { optional } = expr;
    return (frame) => {
      const items: Value[] = [];
      elements.forEach((element, position) => {
        const value = element(frame);
        if (!optional.has(position)) items.push(value);
        else if (!(value instanceof Optional)) fail("cannot initialize optional list element from non-optional value");
        else if (value.value !== undefined) items.push(value.value);
      });
      frame.charge(LIST_COST);
      return new ArrayList(items);
    };
  }

  map(expr: MapLiteral): Interpretable {
    const entries = expr.entries.map(({ key, value, optional }) => ({
      key: this.plan(key),
      value: this.plan(value),
      optional,
    }));
    return (frame) => {
      const built: (readonly [Value, Value])[] = [];
      for (const { key, value, optional } of entries) {
        const name = key(frame);
        const entryValue = value(frame);
        if (!optional) built.push([name, entryValue]);
        else if (!(entryValue instanceof Optional)) fail("cannot initialize optional entry from non-optional value");
        else if (entryValue.value !== undefined) built.push([name, entryValue.value]);
      }
      frame.charge(MAP_COST);
      return EntryMap.of(built);
    };
  }

  object(expr: ObjectLiteral): Interpretable {
    const type = this.#checked.typeOf(expr);
    const fields = expr.fields.map(({ name, value, optional }) => ({ name, value: this.plan(value), optional }));
    return (frame) => {
      const built = new Map<string, Value>();
      for (const { name, value, optional } of fields) {
        const fieldValue = value(frame);
        if (!optional) built.set(name, fieldValue);
        else if (fieldValue instanceof Optional && fieldValue.value !== undefined) built.set(name, fieldValue.value);
      }
      frame.charge(OBJECT_COST);
      return new ObjectValue(type, built);
    };
  }

  comprehension(expr: Comprehension): Interpretable {
    const { loop } = expr;
    const range = this.plan(expr.range);
    const before = this.#locals.length;
    if (loop.kind === "bind") {
      const value = this.plan(expr.init);
      const slot = this.#declareLocal(loop.name);
      const result = this.plan(expr.result);
      this.#locals.length = before;
      return (frame) => {
        frame.set(slot, () => value(frame));
        return result(frame);
      };
    }
    const slot = this.#declareLocal(expr.variable);
    const slot2 = expr.variable2 === undefined ? undefined : this.#declareLocal(expr.variable2);
    const parts: LoopParts = {
      kind: loop.kind,
      slot,
      slot2,
      ...("predicate" in loop
        ? { body: this.plan(loop.predicate) }
        : {
            body: this.plan(loop.transform),
            bodyIsConstant: this.#constants.visit(loop.transform) !== undefined,
            ...(loop.filter && { filter: this.plan(loop.filter) }),
          }),
    };
    this.#locals.length = before;
    return planLoop(range, parts);
  }

  #declareLocal(name: string): number {
    const slot = this.variables.size + this.#localSlots++;
    this.#locals.push([name, slot]);
    return slot;
  }
}

const PATTERN_FUNCTIONS: ReadonlySet<string> = new Set(["matches", "find", "findAll"]);

function planConditional(condition: Interpretable, yes: Interpretable, no: Interpretable): Interpretable {
  return (frame) => {
    const decided = condition(frame);
    if (decided === true) return yes(frame);
    return decided === false ? no(frame) : fail("no such overload");
  };
}

/** Returns the boolean or the failure. */
function evaluateBool(run: Interpretable, frame: Frame): boolean | Failure {
  try {
    const value = run(frame);
    return typeof value === "boolean" ? value : new Failure("no such overload");
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
}
