/** Kubernetes 1.33's functions, and what an expression's surroundings add to them. */
import { type FunctionDeclaration, type Library, mergeFunctions } from "./function.ts";
import { arithmetic } from "./libraries/arithmetic.ts";
import { comparison } from "./libraries/comparison.ts";
import { conversion } from "./libraries/conversion.ts";
import { lists, sets } from "./libraries/lists.ts";
import { loops } from "./libraries/loops.ts";
import { optional } from "./libraries/optional.ts";
import { regex } from "./libraries/regex.ts";
import { basicStrings, strings } from "./libraries/strings.ts";
import { time } from "./libraries/time.ts";
import type { Type } from "./types.ts";
import type { Value } from "./value.ts";

/** In this order overloads of one name are tried. */
export const standardLibraries: readonly Library[] = [
  arithmetic,
  comparison,
  conversion,
  basicStrings,
  time,
  regex,
  optional,
  loops,
  lists,
  strings,
  sets,
];

export interface EnvironmentOptions {
  /** What an expression may name, with its type. */
  readonly variables: Readonly<Record<string, Type>>;
  /** Besides Kubernetes' own. */
  readonly libraries?: readonly Library[];
  /** Lists and maps may be written with items of several types, as Kubernetes does not allow. */
  readonly mixedLiterals?: boolean;
  /** Types are not insisted on: what does not fit fails when it is evaluated. */
  readonly unchecked?: boolean;
}

/** Names, functions and macros that expressions know. Made once, used for many expressions. */
export interface Environment {
  readonly variables: ReadonlyMap<string, Type>;
  readonly functions: ReadonlyMap<string, FunctionDeclaration>;
  readonly constants: ReadonlyMap<string, { readonly type: Type; readonly value: Value }>;
  readonly mixedLiterals: boolean;
  readonly unchecked: boolean;
}

const known = mergeFunctions(standardLibraries);
const constants = new Map(standardLibraries.flatMap((library) => Object.entries(library.constants ?? {})));

export function environment(options: EnvironmentOptions): Environment {
  const more = options.libraries ?? [];
  return {
    variables: new Map(Object.entries(options.variables)),
    functions: more.length === 0 ? known : mergeFunctions([...standardLibraries, ...more]),
    constants: new Map([...constants, ...more.flatMap((library) => Object.entries(library.constants ?? {}))]),
    mixedLiterals: options.mixedLiterals ?? false,
    unchecked: options.unchecked ?? false,
  };
}
