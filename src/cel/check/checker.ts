/**
 * Types of all parts of an expression, and which function each call means. Mistakes are gathered; a part with a
 * mistake has the type `error`, which fits everywhere.
 */

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
import { type CelError, locate } from "../parse/source.ts";
import {
  boolType,
  bytesType,
  doubleType,
  dynType,
  errorType,
  intType,
  listType,
  mapType,
  nullType,
  optionalType,
  stringType,
  type Type,
  typeText,
  uintType,
} from "../values/types.ts";
import type { Checked, Meaning, Names } from "./checked.ts";
import { instantiate, TYPE_SIZE_MAX, typeSize } from "./instantiate.ts";
import { Bindings, isDyn, mostGeneral, sameType, unwrapOptional } from "./unify.ts";

export type CheckResult =
  | { readonly checked: Checked; readonly errors?: undefined }
  | { readonly checked?: undefined; readonly errors: readonly CelError[] };

const ERRORS_MAX = 100;

export function check(expr: Expr, source: string, names: Names): CheckResult {
  const checker = new Checker(names);
  checker.check(expr);
  if (checker.mistakes.length > 0) {
    const errors = checker.mistakes.slice(0, ERRORS_MAX);
    return { errors: errors.map(({ offset, message }) => locate(source, offset, message)) };
  }
  return {
    checked: {
      expr,
      typeOf: (part) => checker.finalType(part),
      meaningOf: (part) => checker.meanings.get(part),
      meanings: () => checker.meanings.values(),
      variableType: (name) => names.variables.get(name),
    },
  };
}

interface Mistake {
  readonly offset: number;
  readonly message: string;
}

class Checker {
  readonly mistakes: Mistake[] = [];
  readonly meanings = new Map<Expr, Meaning>();
  readonly #names: Names;
  readonly #types = new Map<Expr, Type>();
  readonly #bindings = new Bindings();
  /** Innermost last. */
  readonly #locals: (readonly [string, Type])[] = [];

  constructor(names: Names) {
    this.#names = names;
  }

  finalType(expr: Expr): Type {
    return this.#bindings.resolve(this.#types.get(expr) ?? dynType, true);
  }

  /** A part that occurs twice (a macro's argument) is looked at once. */
  check(expr: Expr): Type {
    let type = this.#types.get(expr);
    if (type === undefined) {
      type = this.#typeOf(expr);
      if (typeSize(type) > TYPE_SIZE_MAX) type = this.#fail(expr.offset, "the type of this is too large");
      this.#types.set(expr, type);
    }
    return type;
  }

  #typeOf(expr: Expr): Type {
    switch (expr.kind) {
      case "literal":
        return literalType(expr);
      case "identifier":
        return this.#identifier(expr);
      case "select":
        return this.#select(expr);
      case "call":
        return this.#call(expr);
      case "list":
        return this.#list(expr);
      case "map":
        return this.#map(expr);
      case "object":
        return this.#object(expr);
      case "comprehension":
        return this.#comprehension(expr);
      default:
        return expr satisfies never;
    }
  }

  #identifier(expr: Identifier): Type {
    const found = this.#lookup(expr, expr.name);
    if (found !== undefined) return found;
    return this.#fail(expr.offset, `undeclared reference to '${expr.name}' (in container '')`);
  }

  /** A leading dot skips local variables. */
  #lookup(expr: Expr, name: string): Type | undefined {
    const absolute = name.startsWith(".");
    const plain = absolute ? name.slice(1) : name;
    const local = absolute ? undefined : this.#locals.findLast(([each]) => each === plain);
    const variable = local?.[1] ?? this.#names.variables.get(plain);
    if (variable !== undefined) {
      this.meanings.set(expr, { kind: "variable", name: plain, local: local !== undefined });
      return variable;
    }
    const constant = this.#names.constants.get(plain);
    if (constant === undefined) return undefined;
    this.meanings.set(expr, { kind: "constant", value: constant.value });
    return constant.type;
  }

  #select(expr: Select): Type {
    const name = qualifiedName(expr);
    const whole = name === undefined ? undefined : this.#lookup(expr, name);
    if (whole !== undefined) return whole;
    const type = this.#member(expr, expr.operand, expr.field, false);
    return expr.test ? boolType : this.#bindings.resolve(type);
  }

  #member(expr: Expr, operand: Expr, field: string, optional: boolean): Type {
    const type = this.#bindings.resolve(this.check(operand));
    const inside = unwrapOptional(type);
    const result = this.#memberType(expr, inside ?? type, field);
    return inside !== undefined || optional ? optionalType(result) : result;
  }

  #memberType(expr: Expr, type: Type, field: string): Type {
    if (type.kind === "map") return type.value;
    if (type.kind === "object") {
      return type.field(field) ?? this.#fail(expr.offset, `undefined field '${field}'`);
    }
    if (type.kind === "parameter") this.#bindings.assignable(dynType, type);
    else if (!isDyn(type)) this.#fail(expr.offset, `type '${typeText(type)}' does not support field selection`);
    return dynType;
  }

  #call(expr: Call): Type {
    if (expr.name === "_?._") return this.#optionalSelect(expr);
    for (const arg of expr.args) this.check(arg);
    const target = expr.target;
    if (target === undefined) {
      const name = expr.name.startsWith(".") ? expr.name.slice(1) : expr.name;
      return this.#resolveCall(expr, name, false);
    }
    const prefix = qualifiedName(target);
    const qualified = prefix === undefined ? undefined : `${prefix.replace(/^\./, "")}.${expr.name}`;
    if (qualified !== undefined && this.#names.functions.has(qualified)) {
      return this.#resolveCall(expr, qualified, false);
    }
    this.check(target);
    return this.#resolveCall(expr, expr.name, true);
  }

  #optionalSelect(expr: Call): Type {
    const [operand, field] = expr.args;
    const name = field?.kind === "literal" ? String(field.value) : "";
    const meaning = { kind: "call", name: expr.name, overloads: [], target: false } as const;
    this.meanings.set(expr, meaning);
    this.check(field!);
    return this.#bindings.resolve(this.#member(expr, operand!, name, true));
  }

  #resolveCall(expr: Call, name: string, target: boolean): Type {
    const declared = this.#names.functions.get(name);
    if (declared === undefined) {
      return this.#fail(expr.offset, `undeclared reference to '${name}' (in container '')`);
    }
    const args = target ? [expr.target!, ...expr.args] : expr.args;
    if (name === "_&&_" || name === "_||_") return this.#logic(expr, declared.overloads);
    const types = args.map((arg) => this.check(arg));
    let result: Type | undefined;
    const overloads = declared.overloads.filter((overload) => {
      if (overload.member !== target) return false;
      const { parameters, result: returned } = instantiate(overload, () => this.#bindings.fresh());
      if (!this.#bindings.assignableAll(types, parameters)) return false;
      const type = this.#bindings.resolve(returned);
      if (result === undefined) result = type;
      else if (result.kind !== "dyn" && !sameType(result, type)) result = dynType;
      return true;
    });
    if (result === undefined) return this.#noOverload(expr, name, types, target);
    this.meanings.set(expr, { kind: "call", name, overloads, target });
    return result;
  }

  #noOverload(expr: Call, name: string, types: readonly Type[], target: boolean): Type {
    const texts = types.map((type) => typeText(this.#bindings.resolve(type, true)));
    if (this.#names.unchecked) {
      this.meanings.set(expr, {
        kind: "call",
        name,
        overloads: this.#sameStyle(name, target, types.length),
        target,
      });
    }
    const signature = target ? `${texts[0]}.(${texts.slice(1).join(", ")})` : `(${texts.join(", ")})`;
    return this.#fail(expr.offset, `found no matching overload for '${name}' applied to '${signature}'`);
  }

  #sameStyle(name: string, member: boolean, count: number): readonly Overload[] {
    const overloads = this.#names.functions.get(name)?.overloads ?? [];
    return overloads.filter((overload) => overload.member === member && overload.parameters.length === count);
  }

  #logic(expr: Call, overloads: readonly Overload[]): Type {
    let fits = true;
    for (const arg of expr.args) fits = this.#expect(arg, boolType) && fits;
    this.meanings.set(expr, { kind: "call", name: expr.name, overloads, target: false });
    return fits ? boolType : errorType;
  }

  #list(expr: ListLiteral): Type {
    let element: Type | undefined;
    expr.elements.forEach((item, index) => {
      const type = this.check(item);
      element = this.#join(item, element, expr.optional.has(index) ? this.#unwrapped(item, type) : type);
    });
    return listType(element ?? this.#bindings.fresh());
  }

  #map(expr: MapLiteral): Type {
    let key: Type | undefined;
    let value: Type | undefined;
    for (const entry of expr.entries) {
      key = this.#join(entry.key, key, this.check(entry.key));
      const type = this.check(entry.value);
      value = this.#join(entry.value, value, entry.optional ? this.#unwrapped(entry.value, type) : type);
    }
    return mapType(key ?? this.#bindings.fresh(), value ?? this.#bindings.fresh());
  }

  /** The type inside what is written `?x`. */
  #unwrapped(expr: Expr, type: Type): Type {
    const inside = unwrapOptional(type);
    if (inside !== undefined) return inside;
    if (type.kind !== "dyn") this.#mismatch(expr, optionalType(type), type);
    return type;
  }

  /** Items of one literal have one type, in Kubernetes. */
  #join(expr: Expr, before: Type | undefined, type: Type): Type {
    if (before === undefined) return type;
    if (this.#bindings.assignable(before, type)) return mostGeneral(before, type);
    if (this.#names.mixedLiterals) return dynType;
    return this.#mismatch(expr, before, type);
  }

  #object(expr: ObjectLiteral): Type {
    const named = this.#lookup(expr, expr.type);
    if (named === undefined) {
      return this.#fail(expr.offset, `undeclared reference to '${expr.type}' (in container '')`);
    }
    const type = named.kind === "type" ? named.of : undefined;
    if (type?.kind !== "object") return this.#fail(expr.offset, `'${typeText(type ?? named)}' is not a message type`);
    for (const field of expr.fields) {
      const given = this.check(field.value);
      const value = field.optional ? this.#unwrapped(field.value, given) : given;
      const declared = type.field(field.name) ?? this.#fail(field.offset, `undefined field '${field.name}'`);
      if (this.#bindings.assignable(declared, value)) continue;
      const types = `'${typeText(declared)}' but provided type is '${typeText(value)}'`;
      this.#fail(field.offset, `expected type of field '${field.name}' is ${types}`);
    }
    return type;
  }

  #comprehension(expr: Comprehension): Type {
    const range = this.#bindings.resolve(this.check(expr.range));
    const accumulated = this.check(expr.init);
    const [first, second] = this.#loopTypes(expr, range);
    const before = this.#locals.length;
    this.#locals.push([expr.loop.kind === "bind" ? expr.loop.name : ACCUMULATOR, accumulated]);
    const outer = this.#locals.length;
    this.#locals.push([expr.variable, first]);
    if (expr.variable2 !== undefined) this.#locals.push([expr.variable2, second]);
    this.check(expr.condition);
    this.#expect(expr.condition, boolType);
    const step = this.check(expr.step);
    if (!this.#bindings.assignable(accumulated, step)) this.#mismatch(expr.step, accumulated, step);
    this.#locals.length = outer;
    const result = this.check(expr.result);
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
        this.#bindings.assignable(dynType, range);
        return [dynType, dynType];
      case "dyn":
      case "error":
        return [dynType, dynType];
      default: {
        const what = `expression of type '${typeText(range)}' cannot be range of a comprehension`;
        this.#fail(expr.range.offset, `${what} (must be list, map, or dynamic)`);
        return [errorType, errorType];
      }
    }
  }

  #expect(expr: Expr, type: Type): boolean {
    const actual = this.check(expr);
    if (this.#bindings.assignable(actual, type)) return true;
    this.#mismatch(expr, type, actual);
    return false;
  }

  #mismatch(expr: Expr, expected: Type, actual: Type): Type {
    const [wanted, found] = [expected, actual].map((type) => typeText(this.#bindings.resolve(type, true)));
    return this.#fail(expr.offset, `expected type '${wanted}' but found '${found}'`);
  }

  #fail(offset: number, message: string): Type {
    if (this.#names.unchecked) return dynType;
    this.mistakes.push({ offset, message });
    return errorType;
  }
}

function literalType({ value, unsigned }: Literal): Type {
  if (value === null) return nullType;
  switch (typeof value) {
    case "bigint":
      return unsigned === true ? uintType : intType;
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
