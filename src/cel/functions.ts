/** Declarations of functions: their overloads and implementations. */
import type { Type } from "./values/types.ts";
import type { Value } from "./values/value.ts";

export interface Overload {
  /** cel-go's ID (`string_size`, `index_list`), by which costs are declared. */
  readonly id: string;
  /** A member function: `x.f(y)`; the receiver is the first parameter. */
  readonly member: boolean;
  readonly parameters: readonly Type[];
  readonly result: Type;
  /** Throws a `Failure` when there is no result. */
  readonly call: (...args: never[]) => Value;
}

export interface FunctionDeclaration {
  readonly name: string;
  readonly overloads: readonly Overload[];
}

/** A set of functions, constants and type names. */
export interface Library {
  readonly functions: readonly FunctionDeclaration[];
  readonly constants?: Readonly<Record<string, { readonly type: Type; readonly value: Value }>>;
}

type Call = Overload["call"];

/** `f(a, b)`. */
export function overload(id: string, parameters: readonly Type[], result: Type, call: Call): Overload {
  return { id, member: false, parameters, result, call };
}

/** `a.f(b)`. */
export function method(id: string, parameters: readonly Type[], result: Type, call: Call): Overload {
  return { id, member: true, parameters, result, call };
}

export function functionOf(name: string, ...overloads: readonly Overload[]): FunctionDeclaration {
  return { name, overloads };
}

/** Merges functions of the same name to one function with all overloads. */
export function mergeFunctions(libraries: readonly Library[]): ReadonlyMap<string, FunctionDeclaration> {
  const merged = new Map<string, FunctionDeclaration>();
  for (const declared of libraries.flatMap(({ functions }) => functions)) {
    const before = merged.get(declared.name)?.overloads ?? [];
    merged.set(declared.name, { name: declared.name, overloads: [...before, ...declared.overloads] });
  }
  return merged;
}
