/** Kubernetes 1.33's functions, and what an expression's surroundings add to them. */
import { type FunctionDeclaration, type Library, mergeFunctions } from "./functions.ts";
import { arithmetic } from "./libraries/arithmetic.ts";
import { authorizer } from "./libraries/authorizer.ts";
import { comparison } from "./libraries/comparison.ts";
import { conversion } from "./libraries/conversion.ts";
import { formats, type NameFormats } from "./libraries/formats.ts";
import { cidr, ip } from "./libraries/ip.ts";
import { lists, sets } from "./libraries/lists.ts";
import { loops } from "./libraries/loops.ts";
import { optional } from "./libraries/optional.ts";
import { quantity } from "./libraries/quantity.ts";
import { regex } from "./libraries/regex.ts";
import { semver } from "./libraries/semver.ts";
import { basicStrings, strings } from "./libraries/strings.ts";
import { time } from "./libraries/time.ts";
import { url } from "./libraries/url.ts";
import type { Type } from "./values/types.ts";
import type { Value } from "./values/value.ts";

/** In this order overloads of one name are tried. */
const standardLibraries: readonly Library[] = [
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
  url,
  ip,
  cidr,
  quantity,
];

/** What a version adds is known to expressions stored before, so that a cluster can go back one version. */
const newLibraries: readonly Library[] = [semver];

export interface EnvironmentOptions {
  /** What an expression may name, with its type. */
  readonly variables: Readonly<Record<string, Type>>;
  /** The forms of names, for `format` and `authorizer`. */
  readonly nameFormats: NameFormats;
  /** The expressions were accepted before: they may use what this version added (`semver`). */
  readonly stored?: boolean;
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

interface FunctionSet {
  readonly functions: Environment["functions"];
  readonly constants: Environment["constants"];
}

const functionSets = new WeakMap<NameFormats, { readonly fresh: FunctionSet; readonly stored: FunctionSet }>();

export function createEnvironment(options: EnvironmentOptions): Environment {
  let both = functionSets.get(options.nameFormats);
  if (both === undefined) {
    const libraries = [...standardLibraries, formats(options.nameFormats), authorizer(options.nameFormats)];
    both = { fresh: functionSetOf(libraries), stored: functionSetOf([...libraries, ...newLibraries]) };
    functionSets.set(options.nameFormats, both);
  }
  return {
    ...(options.stored === true ? both.stored : both.fresh),
    variables: new Map(Object.entries(options.variables)),
    mixedLiterals: options.mixedLiterals ?? false,
    unchecked: options.unchecked ?? false,
  };
}

function functionSetOf(libraries: readonly Library[]): FunctionSet {
  const constants = libraries.flatMap((library) => Object.entries(library.constants ?? {}));
  return { functions: mergeFunctions(libraries), constants: new Map(constants) };
}
