/** Assignability of types, and bindings of type parameters. */
import { dynType, errorType, isOptional, listType, mapType, opaqueType, type Type, typeType } from "../values/types.ts";

export function isDyn(type: Type): boolean {
  return type.kind === "dyn" || type.kind === "error";
}

/** Type equality without regard to bounds. */
export function isSameType(a: Type, b: Type): boolean {
  if (a === b) return true;
  switch (a.kind) {
    case "list":
      return b.kind === "list" && isSameType(a.element, b.element);
    case "map":
      return b.kind === "map" && isSameType(a.key, b.key) && isSameType(a.value, b.value);
    case "object":
      // Object types are equal only if identical: each schema has one type, and names need not be unique.
      return false;
    case "parameter":
      return b.kind === "parameter" && a.name === b.name;
    case "opaque":
      return b.kind === "opaque" && a.name === b.name && areSameTypes(a.parameters, b.parameters);
    case "type":
      return (
        b.kind === "type" && (a.of === undefined ? b.of === undefined : b.of !== undefined && isSameType(a.of, b.of))
      );
    default:
      return a.kind === b.kind;
  }
}

function areSameTypes(a: readonly Type[], b: readonly Type[]): boolean {
  return a.length === b.length && a.every((type, i) => isSameType(type, b[i]!));
}

/** The type inside an optional one. */
export function unwrapOptional(type: Type): Type | undefined {
  return isOptional(type) ? (type.parameters[0] ?? dynType) : undefined;
}

/** The bindings of type parameters of an expression. A failed assignment is rolled back. */
export class Bindings {
  readonly #bound = new Map<string, Type>();
  #trail: (readonly [string, Type | undefined])[] = [];
  #fresh = 0;

  freshParameter(): Type {
    return { kind: "parameter", name: `_var${this.#fresh++}` };
  }

  /** Whether each type of `from` is assignable to the corresponding one of `to`; keeps the bindings on success. */
  areAssignable(from: readonly Type[], to: readonly Type[]): boolean {
    if (from.length !== to.length) return false;
    this.#trail = [];
    if (from.every((type, i) => this.#isAssignable(type, to[i]!))) return true;
    for (const [name, type] of this.#trail.reverse()) {
      if (type === undefined) this.#bound.delete(name);
      else this.#bound.set(name, type);
    }
    return false;
  }

  isAssignable(from: Type, to: Type): boolean {
    return this.areAssignable([from], [to]);
  }

  /** Replaces bound parameters; `unknownIsDyn` replaces unbound ones by dyn. */
  resolve(type: Type, unknownIsDyn = false): Type {
    switch (type.kind) {
      case "parameter": {
        const bound = this.#bound.get(type.name);
        if (bound !== undefined) return this.resolve(bound, unknownIsDyn);
        return unknownIsDyn ? dynType : type;
      }
      case "list": {
        const element = this.resolve(type.element, unknownIsDyn);
        return element === type.element ? type : listType(element);
      }
      case "map": {
        const key = this.resolve(type.key, unknownIsDyn);
        const value = this.resolve(type.value, unknownIsDyn);
        return key === type.key && value === type.value ? type : mapType(key, value);
      }
      case "opaque": {
        if (type.parameters.length === 0) return type;
        return opaqueType(type.name, ...type.parameters.map((each) => this.resolve(each, unknownIsDyn)));
      }
      case "type":
        return type.of === undefined ? type : typeType(this.resolve(type.of, unknownIsDyn));
      default:
        return type;
    }
  }

  #bind(name: string, type: Type): void {
    this.#trail.push([name, this.#bound.get(name)]);
    this.#bound.set(name, type);
  }

  #isAssignable(from: Type, to: Type): boolean {
    if (to.kind === "parameter") {
      const fits = this.#substitutes(from, to);
      if (fits !== "unbound") return fits;
    }
    if (from.kind === "parameter") return this.#substitutes(to, from) === true;
    if (isDyn(from) || isDyn(to)) return true;
    if (from.kind === "null") return isNullable(to);
    if (to.kind === "null") return isNullable(from);
    switch (from.kind) {
      case "type":
        return to.kind === "type";
      case "list":
        return to.kind === "list" && this.#isAssignable(from.element, to.element);
      case "map":
        return to.kind === "map" && this.#isAssignable(from.key, to.key) && this.#isAssignable(from.value, to.value);
      case "opaque": {
        if (to.kind !== "opaque" || to.name !== from.name || to.parameters.length !== from.parameters.length) {
          return false;
        }
        return from.parameters.every((type, i) => this.#isAssignable(type, to.parameters[i]!));
      }
      default:
        return isSameType(from, to);
    }
  }

  /** Whether the parameter can be bound to `type`; `unbound` when it cannot and has no binding. */
  #substitutes(type: Type, parameter: Type & { kind: "parameter" }): boolean | "unbound" {
    if (isSameType(type, parameter)) return true;
    const bound = this.#bound.get(parameter.name);
    if (bound === undefined) {
      if (this.#occurs(parameter, type)) return "unbound";
      this.#bind(parameter.name, type);
      return true;
    }
    if (isSameType(type, bound)) return true;
    if (!this.#isAssignable(type, bound)) return false;
    const general = mostGeneral(type, bound);
    if (!this.#occurs(parameter, general)) this.#bind(parameter.name, general);
    return true;
  }

  #occurs(parameter: Type, within: Type): boolean {
    if (isSameType(parameter, within)) return true;
    switch (within.kind) {
      case "parameter": {
        const bound = this.#bound.get(within.name);
        return bound !== undefined && this.#occurs(parameter, bound);
      }
      case "list":
        return this.#occurs(parameter, within.element);
      case "map":
        return this.#occurs(parameter, within.key) || this.#occurs(parameter, within.value);
      case "opaque":
        return within.parameters.some((type) => this.#occurs(parameter, type));
      case "type":
        return within.of !== undefined && this.#occurs(parameter, within.of);
      default:
        return false;
    }
  }
}

/** Types that accept null, as messages do in protobuf. */
function isNullable(type: Type): boolean {
  return ["null", "opaque", "object", "timestamp", "duration"].includes(type.kind);
}

/** The more general of two types of which one is assignable to the other. */
export function mostGeneral(a: Type, b: Type): Type {
  return isAtMostAsSpecific(a, b) ? a : b;
}

function isAtMostAsSpecific(a: Type, b: Type): boolean {
  if (a.kind === "dyn" || a.kind === "parameter") return true;
  if (b.kind === "dyn" || b.kind === "parameter") return false;
  if (a === errorType || a.kind !== b.kind) return false;
  switch (a.kind) {
    case "list":
      return b.kind === "list" && isAtMostAsSpecific(a.element, b.element);
    case "map":
      return b.kind === "map" && isAtMostAsSpecific(a.key, b.key) && isAtMostAsSpecific(a.value, b.value);
    case "opaque": {
      if (b.kind !== "opaque" || a.name !== b.name || a.parameters.length !== b.parameters.length) return false;
      return a.parameters.every((type, i) => isAtMostAsSpecific(type, b.parameters[i]!));
    }
    case "type":
      return true;
    default:
      return isSameType(a, b);
  }
}
