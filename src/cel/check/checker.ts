/**
 * Infers the types of all nodes and resolves names and overloads. Collects errors; a node with an error has the type
 * `error`, which is assignable to every type.
 */

import type { Environment } from "../environment.ts";
import type { Overload } from "../functions.ts";
import {
  ACCUMULATOR,
  type Call,
  type Comprehension,
  type Expr,
  type Identifier,
  type ListLiteral,
  type Literal,
  type MapLiteral,
  type ObjectLiteral,
  qualifiedName,
  type Select,
} from "../parse/ast.ts";
import { type CelError, createError } from "../parse/source.ts";
import { ExprPass } from "../parse/visitor.ts";
import {
  boolType,
  bytesType,
  doubleType,
  dynType,
  errorType,
  formatType,
  intType,
  listType,
  mapType,
  nullType,
  optionalType,
  stringType,
  type Type,
  uintType,
} from "../values/types.ts";
import type { CheckedExpression, Reference } from "./checked-expression.ts";
import { instantiate, TYPE_SIZE_MAX, typeSize } from "./instantiate.ts";
import { Bindings, isDyn, isSameType, mostGeneral, unwrapOptional } from "./unify.ts";

export type CheckResult =
  | { readonly checked: CheckedExpression; readonly errors?: undefined }
  | { readonly checked?: undefined; readonly errors: readonly CelError[] };

const ERRORS_MAX = 100;

export function check(expr: Expr, source: string, environment: Environment): CheckResult {
  const checker = new Checker(environment);
  checker.visit(expr);
  if (checker.issues.length > 0) {
    const errors = checker.issues.slice(0, ERRORS_MAX);
    return { errors: errors.map(({ offset, message }) => createError(source, offset, message)) };
  }
  return {
    checked: {
      expr,
      typeOf: (part) => checker.finalType(part),
      referenceOf: (part) => checker.references.get(part),
      references: () => checker.references.values(),
      variableType: (name) => environment.variables.get(name),
    },
  };
}

interface Issue {
  readonly offset: number;
  readonly message: string;
}

class Checker extends ExprPass<Type> {
  readonly issues: Issue[] = [];
  readonly references = new Map<Expr, Reference>();
  readonly #environment: Environment;
  readonly #bindings = new Bindings();
  /** Local variables, innermost last. */
  readonly #locals: (readonly [string, Type])[] = [];

  constructor(environment: Environment) {
    super();
    this.#environment = environment;
  }

  finalType(expr: Expr): Type {
    return this.#bindings.resolve(this.resultOf(expr) ?? dynType, true);
  }

  protected override compute(expr: Expr): Type {
    const type = super.compute(expr);
    return typeSize(type) > TYPE_SIZE_MAX ? this.#report(expr.offset, "the type of this is too large") : type;
  }

  literal({ value, unsigned }: Literal): Type {
    return typeOfLiteral(value, unsigned === true);
  }

  identifier(expr: Identifier): Type {
    const found = this.#lookup(expr, expr.name);
    if (found !== undefined) return found;
    return this.#report(expr.offset, `undeclared reference to '${expr.name}' (in container '')`);
  }

  /** A leading dot skips local variables. */
  #lookup(expr: Expr, name: string): Type | undefined {
    const absolute = name.startsWith(".");
    const plain = absolute ? name.slice(1) : name;
    const local = absolute ? undefined : this.#locals.findLast(([each]) => each === plain);
    const variable = local?.[1] ?? this.#environment.variables.get(plain);
    if (variable !== undefined) {
      this.references.set(expr, { kind: "variable", name: plain, local: local !== undefined });
      return variable;
    }
    const constant = this.#environment.constants.get(plain);
    if (constant === undefined) return undefined;
    this.references.set(expr, { kind: "constant", value: constant.value });
    return constant.type;
  }

  select(expr: Select): Type {
    const name = qualifiedName(expr);
    const whole = name === undefined ? undefined : this.#lookup(expr, name);
    if (whole !== undefined) return whole;
    const type = this.#member(expr, expr.operand, expr.field, false);
    return expr.test ? boolType : this.#bindings.resolve(type);
  }

  #member(expr: Expr, operand: Expr, field: string, optional: boolean): Type {
    const type = this.#bindings.resolve(this.visit(operand));
    const inside = unwrapOptional(type);
    const result = this.#memberType(expr, inside ?? type, field);
    return inside !== undefined || optional ? optionalType(result) : result;
  }

  #memberType(expr: Expr, type: Type, field: string): Type {
    if (type.kind === "map") return type.value;
    if (type.kind === "object") {
      return type.field(field) ?? this.#report(expr.offset, `undefined field '${field}'`);
    }
    if (type.kind === "parameter") this.#bindings.isAssignable(dynType, type);
    else if (!isDyn(type)) this.#report(expr.offset, `type '${formatType(type)}' does not support field selection`);
    return dynType;
  }

  call(expr: Call): Type {
    if (expr.name === "_?._") return this.#optionalSelect(expr);
    for (const arg of expr.args) this.visit(arg);
    const target = expr.target;
    if (target === undefined) {
      const name = expr.name.startsWith(".") ? expr.name.slice(1) : expr.name;
      return this.#resolveCall(expr, name, false);
    }
    const prefix = qualifiedName(target);
    const qualified = prefix === undefined ? undefined : `${prefix.replace(/^\./, "")}.${expr.name}`;
    if (qualified !== undefined && this.#environment.functions.has(qualified)) {
      return this.#resolveCall(expr, qualified, false);
    }
    this.visit(target);
    return this.#resolveCall(expr, expr.name, true);
  }

  #optionalSelect(expr: Call): Type {
    const [operand, field] = expr.args;
    const name = field?.kind === "literal" ? String(field.value) : "";
    const reference = { kind: "call", name: expr.name, overloads: [], target: false } as const;
    this.references.set(expr, reference);
    this.visit(field!);
    return this.#bindings.resolve(this.#member(expr, operand!, name, true));
  }

  #resolveCall(expr: Call, name: string, target: boolean): Type {
    const declared = this.#environment.functions.get(name);
    if (declared === undefined) {
      return this.#report(expr.offset, `undeclared reference to '${name}' (in container '')`);
    }
    const args = target ? [expr.target!, ...expr.args] : expr.args;
    if (name === "_&&_" || name === "_||_") return this.#logic(expr, declared.overloads);
    const types = args.map((arg) => this.visit(arg));
    let result: Type | undefined;
    const overloads = declared.overloads.filter((overload) => {
      if (overload.member !== target) return false;
      const { parameters, result: returned } = instantiate(overload, () => this.#bindings.freshParameter());
      if (!this.#bindings.areAssignable(types, parameters)) return false;
      const type = this.#bindings.resolve(returned);
      if (result === undefined) result = type;
      else if (result.kind !== "dyn" && !isSameType(result, type)) result = dynType;
      return true;
    });
    if (result === undefined) return this.#reportNoOverload(expr, name, types, target);
    this.references.set(expr, { kind: "call", name, overloads, target });
    return result;
  }

  #reportNoOverload(expr: Call, name: string, types: readonly Type[], target: boolean): Type {
    const texts = types.map((type) => formatType(this.#bindings.resolve(type, true)));
    if (this.#environment.unchecked) {
      this.references.set(expr, {
        kind: "call",
        name,
        overloads: this.#candidates(name, target, types.length),
        target,
      });
    }
    const signature = target ? `${texts[0]}.(${texts.slice(1).join(", ")})` : `(${texts.join(", ")})`;
    return this.#report(expr.offset, `found no matching overload for '${name}' applied to '${signature}'`);
  }

  #candidates(name: string, member: boolean, count: number): readonly Overload[] {
    const overloads = this.#environment.functions.get(name)?.overloads ?? [];
    return overloads.filter((overload) => overload.member === member && overload.parameters.length === count);
  }

  #logic(expr: Call, overloads: readonly Overload[]): Type {
    let fits = true;
    for (const arg of expr.args) fits = this.#expect(arg, boolType) && fits;
    this.references.set(expr, { kind: "call", name: expr.name, overloads, target: false });
    return fits ? boolType : errorType;
  }

  list(expr: ListLiteral): Type {
    let element: Type | undefined;
    expr.elements.forEach((item, index) => {
      const type = this.visit(item);
      const plain = expr.optional.has(index) ? this.#unwrapOptional(item, type) : type;
      element = this.#join(element, plain);
    });
    return listType(element ?? this.#bindings.freshParameter());
  }

  map(expr: MapLiteral): Type {
    let key: Type | undefined;
    let value: Type | undefined;
    for (const entry of expr.entries) {
      key = this.#join(key, this.visit(entry.key));
      const type = this.visit(entry.value);
      value = this.#join(value, entry.optional ? this.#unwrapOptional(entry.value, type) : type);
    }
    return mapType(key ?? this.#bindings.freshParameter(), value ?? this.#bindings.freshParameter());
  }

  /** The type inside an optional element or entry (`?x`). */
  #unwrapOptional(expr: Expr, type: Type): Type {
    const inside = unwrapOptional(type);
    if (inside !== undefined) return inside;
    if (type.kind !== "dyn") this.#reportMismatch(expr, optionalType(type), type);
    return type;
  }

  #join(before: Type | undefined, type: Type): Type {
    if (before === undefined) return type;
    return this.#bindings.isAssignable(before, type) ? mostGeneral(before, type) : dynType;
  }

  object(expr: ObjectLiteral): Type {
    const type = this.#environment.objectTypes?.(expr.type) ?? this.#namedType(expr);
    if (type.kind !== "object") return type;
    for (const field of expr.fields) {
      const fieldType = this.visit(field.value);
      const value = field.optional ? this.#unwrapOptional(field.value, fieldType) : fieldType;
      const declared = type.field(field.name) ?? this.#report(field.offset, `undefined field '${field.name}'`);
      if (this.#bindings.isAssignable(declared, value)) continue;
      const types = `'${formatType(declared)}' but provided type is '${formatType(value)}'`;
      this.#report(field.offset, `expected type of field '${field.name}' is ${types}`);
    }
    return type;
  }

  #namedType(expr: ObjectLiteral): Type {
    const named = this.#lookup(expr, expr.type);
    if (named === undefined) {
      return this.#report(expr.offset, `undeclared reference to '${expr.type}' (in container '')`);
    }
    if (named.kind !== "type") return this.#report(expr.offset, `'${formatType(named)}' is not a type`);
    if (named.of?.kind === "object") return named.of;
    return this.#report(expr.offset, `'${formatType(named.of ?? named)}' is not a message type`);
  }

  comprehension(expr: Comprehension): Type {
    const range = this.#bindings.resolve(this.visit(expr.range));
    const accumulated = this.visit(expr.init);
    const [first, second] = this.#loopTypes(expr, range);
    const before = this.#locals.length;
    this.#locals.push([expr.loop.kind === "bind" ? expr.loop.name : ACCUMULATOR, accumulated]);
    const outer = this.#locals.length;
    this.#locals.push([expr.variable, first]);
    if (expr.variable2 !== undefined) this.#locals.push([expr.variable2, second]);
    this.visit(expr.condition);
    this.#expect(expr.condition, boolType);
    const step = this.visit(expr.step);
    if (!this.#bindings.isAssignable(accumulated, step)) this.#reportMismatch(expr.step, accumulated, step);
    this.#locals.length = outer;
    const result = this.visit(expr.result);
    this.#locals.length = before;
    return this.#bindings.resolve(result);
  }

  #loopTypes(expr: Comprehension, range: Type): readonly [Type, Type] {
    const two = expr.variable2 !== undefined;
    switch (range.kind) {
      case "list":
        return two ? [intType, range.element] : [range.element, errorType];
      case "map":
        return [range.key, range.value];
      case "parameter":
        this.#bindings.isAssignable(dynType, range);
        return [dynType, dynType];
      case "dyn":
      case "error":
        return [dynType, dynType];
      default: {
        const what = `expression of type '${formatType(range)}' cannot be range of a comprehension`;
        this.#report(expr.range.offset, `${what} (must be list, map, or dynamic)`);
        return [errorType, errorType];
      }
    }
  }

  #expect(expr: Expr, type: Type): boolean {
    const actual = this.visit(expr);
    if (this.#bindings.isAssignable(actual, type)) return true;
    this.#reportMismatch(expr, type, actual);
    return false;
  }

  #reportMismatch(expr: Expr, expected: Type, actual: Type): Type {
    const [wanted, found] = [expected, actual].map((type) => formatType(this.#bindings.resolve(type, true)));
    return this.#report(expr.offset, `expected type '${wanted}' but found '${found}'`);
  }

  #report(offset: number, message: string): Type {
    if (this.#environment.unchecked) return dynType;
    this.issues.push({ offset, message });
    return errorType;
  }
}

function typeOfLiteral(value: Literal["value"], unsigned: boolean): Type {
  if (value === null) return nullType;
  switch (typeof value) {
    case "bigint":
      return unsigned ? uintType : intType;
    case "number":
      return doubleType;
    case "string":
      return stringType;
    case "boolean":
      return boolType;
    default:
      return bytesType;
  }
}
