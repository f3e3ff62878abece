/** The functions and variables of an expression: Kubernetes 1.33's libraries and what the caller adds. */
import { type FunctionDeclaration, type Library, mergeFunctions } from "./functions.ts";
import { arithmetic } from "./libraries/arithmetic.ts";
import { authorizer } from "./libraries/authorizer.ts";
import { comparison } from "./libraries/comparison.ts";
import { conversion } from "./libraries/conversion.ts";
import { formats, type NameFormats } from "./libraries/formats.ts";
import { cidr, ip } from "./libraries/ip.ts";
import { jsonPatch } from "./libraries/json-patch.ts";
import { lists, sets } from "./libraries/lists.ts";
import { loops } from "./libraries/loops.ts";
import { optional } from "./libraries/optional.ts";
import { quantity } from "./libraries/quantity.ts";
import { regex } from "./libraries/regex.ts";
import { semver } from "./libraries/semver.ts";
import { basicStrings, strings } from "./libraries/strings.ts";
import { time } from "./libraries/time.ts";
import { url } from "./libraries/url.ts";
import type { ObjectType, Type } from "./values/types.ts";
import type { Value } from "./values/value.ts";

/** The order of overloads with the same name. */
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

/** Libraries new in this version: only stored expressions can use them, so that a cluster can be downgraded. */
const newLibraries: readonly Library[] = [semver];

export interface EnvironmentOptions {
  /** The variables with their types. */
  readonly variables: Readonly<Record<string, Type>>;
  /** Validation of names, for the libraries `format` and `authorizer`. */
  readonly nameFormats: NameFormats;
  /** The expressions are stored already, and can use the libraries that this version added (`semver`). */
  readonly stored?: boolean;
  /** Allows list and map literals with items of several types, which Kubernetes does not. */
  readonly mixedLiterals?: boolean;
  /** Disables type errors: evaluation fails instead. */
  readonly unchecked?: boolean;
  /** The types of object literals (`Object.spec{…}`), with the functions for patches. */
  readonly objectTypes?: ObjectTypes | undefined;
}

/** Returns the same type at each call with the same name; undefined for an unknown name. */
export type ObjectTypes = (name: string) => ObjectType | undefined;

/** Variables, functions and constants. Create it once for many expressions. */
export interface Environment {
  readonly variables: ReadonlyMap<string, Type>;
  readonly functions: ReadonlyMap<string, FunctionDeclaration>;
  /** Types by name (`int`, `google.protobuf.Timestamp`) and constants of libraries. */
  readonly constants: ReadonlyMap<string, { readonly type: Type; readonly value: Value }>;
  /** See `EnvironmentOptions`. */
  readonly mixedLiterals: boolean;
  readonly unchecked: boolean;
  readonly objectTypes: ObjectTypes | undefined;
}

interface FunctionSet {
  readonly functions: Environment["functions"];
  readonly constants: Environment["constants"];
}

interface FunctionSets {
  readonly fresh: FunctionSet;
  readonly stored: FunctionSet;
  /** Those with the functions for patches, fresh and stored. */
  patches?: { readonly fresh: FunctionSet; readonly stored: FunctionSet };
}

const functionSets = new WeakMap<NameFormats, FunctionSets>();

export function createEnvironment(options: EnvironmentOptions): Environment {
  const sets = functionSetsOf(options.nameFormats, options.objectTypes !== undefined);
  return {
    ...(options.stored === true ? sets.stored : sets.fresh),
    variables: new Map(Object.entries(options.variables)),
    mixedLiterals: options.mixedLiterals ?? false,
    unchecked: options.unchecked ?? false,
    objectTypes: options.objectTypes,
  };
}

function functionSetsOf(nameFormats: NameFormats, patches: boolean): Pick<FunctionSets, "fresh" | "stored"> {
  const libraries = (): readonly Library[] => [...standardLibraries, formats(nameFormats), authorizer(nameFormats)];
  let sets = functionSets.get(nameFormats);
  if (sets === undefined) {
    sets = createFunctionSets(libraries());
    functionSets.set(nameFormats, sets);
  }
  if (!patches) return sets;
  sets.patches ??= createFunctionSets([...libraries(), jsonPatch]);
  return sets.patches;
}

function createFunctionSets(libraries: readonly Library[]): Pick<FunctionSets, "fresh" | "stored"> {
  return { fresh: functionSetOf(libraries), stored: functionSetOf([...libraries, ...newLibraries]) };
}

function functionSetOf(libraries: readonly Library[]): FunctionSet {
  const constants = libraries.flatMap((library) => Object.entries(library.constants ?? {}));
  return { functions: mergeFunctions(libraries), constants: new Map(constants) };
}
