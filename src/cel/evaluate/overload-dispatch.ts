/** Selects the overload of a call by the types of the argument values. */
import type { Overload } from "../functions.ts";
import { Uint } from "../values/compare.ts";
import { typeNameOf } from "../values/type-name.ts";
import type { Type } from "../values/types.ts";
import { fail, List, MapValue, Opaque, type Value } from "../values/value.ts";

type Guard = (value: Value) => boolean;

/** Checks the arguments even for a single overload, since null and dyn pass the type checker. */
export function createDispatcher(name: string, overloads: readonly Overload[]): (args: readonly Value[]) => Overload {
  const candidates = overloads.map((overload) => ({ overload, guards: overload.parameters.map(guardOf) }));
  const [only] = candidates;
  if (only !== undefined && candidates.length === 1) {
    return (args) => (matches(only.guards, args) ? only.overload : failNoOverload(name, args));
  }
  return (args) => candidates.find(({ guards }) => matches(guards, args))?.overload ?? failNoOverload(name, args);
}

const ORDERED = "bool bytes double google.protobuf.Duration int string google.protobuf.Timestamp uint";
const NUMERIC = "double int uint";
/**
 * The types of the first argument that cel-go passes on to the one implementation of a standard function, which reports
 * a wrong second argument without names.
 */
const traits: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    "_+_": `bytes ${NUMERIC} google.protobuf.Duration list string google.protobuf.Timestamp`,
    "_-_": `${NUMERIC} google.protobuf.Duration google.protobuf.Timestamp`,
    "_*_": NUMERIC,
    "_/_": NUMERIC,
    "_%_": "int uint",
    "-_": "bool double google.protobuf.Duration int",
    "_<_": ORDERED,
    "_<=_": ORDERED,
    "_>_": ORDERED,
    "_>=_": ORDERED,
    size: "bytes list map string",
    matches: "string",
  }).map(([name, types]) => [name, new Set(types.split(" "))]),
);
/** Types with methods: a missing one is reported without names. */
const RECEIVERS: ReadonlySet<string> = new Set(["google.protobuf.Duration", "string", "google.protobuf.Timestamp"]);
/** In place of the name of a function whose errors have none. */
export const UNNAMED = "";
const unnamed: ReadonlySet<string> = new Set([UNNAMED, "!_", "@in", "contains", "startsWith", "endsWith"]);

function failNoOverload(name: string, args: readonly Value[]): never {
  const types = args.map(typeNameOf);
  const [first = ""] = types;
  const accepted = traits.get(name);
  if (unnamed.has(name) || (accepted !== undefined && (accepted.has(first) || RECEIVERS.has(first)))) {
    return fail("no such overload");
  }
  return fail(`no such overload: ${accepted === undefined ? `${name}(${types.join(", ")})` : name}`);
}

function matches(guards: readonly Guard[], args: readonly Value[]): boolean {
  for (let i = 0; i < guards.length; i++) if (!guards[i]!(args[i]!)) return false;
  return true;
}

/** The first item stands for all, as in cel-go. */
function guardOfList(item: Guard): Guard {
  return (value) => value instanceof List && (item === always || value.size === 0 || item(value.at(0)));
}

const always: Guard = () => true;

function guardOf(type: Type): Guard {
  switch (type.kind) {
    case "int":
      return (value) => typeof value === "bigint";
    case "double":
      return (value) => typeof value === "number";
    case "string":
      return (value) => typeof value === "string";
    case "bool":
      return (value) => typeof value === "boolean";
    case "uint":
      return (value) => value instanceof Uint;
    case "bytes":
      return (value) => value instanceof Uint8Array;
    case "null":
      return (value) => value === null;
    case "list":
      return guardOfList(guardOf(type.element));
    case "map":
    case "object":
      return (value) => value instanceof MapValue;
    case "timestamp":
    case "duration":
    case "type":
      return (value) => value instanceof Opaque && value.type.kind === type.kind;
    case "opaque":
      return (value) => value instanceof Opaque && value.type.kind === "opaque" && value.type.name === type.name;
    default:
      return always;
  }
}
