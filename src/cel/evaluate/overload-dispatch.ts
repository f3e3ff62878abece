/** Selects the overload of a call by the types of the argument values. */
import type { Overload } from "../functions.ts";
import { Uint } from "../values/compare.ts";
import type { Type } from "../values/types.ts";
import { fail, List, MapValue, Opaque, type Value } from "../values/value.ts";

type Guard = (value: Value) => boolean;

/** Checks the arguments even for a single overload, since null and dyn pass the type checker. */
export function createDispatcher(overloads: readonly Overload[]): (args: readonly Value[]) => Overload {
  const candidates = overloads.map((overload) => ({ overload, guards: overload.parameters.map(guardOf) }));
  const [only] = candidates;
  if (only !== undefined && candidates.length === 1) {
    return (args) => (matches(only.guards, args) ? only.overload : failNoOverload());
  }
  return (args) => candidates.find(({ guards }) => matches(guards, args))?.overload ?? failNoOverload();
}

function failNoOverload(): never {
  return fail("no such overload");
}

function matches(guards: readonly Guard[], args: readonly Value[]): boolean {
  for (let i = 0; i < guards.length; i++) if (!guards[i]!(args[i]!)) return false;
  return true;
}

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
      return (value) => value instanceof List;
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
      return () => true;
  }
}
