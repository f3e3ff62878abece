/** Instantiates the signature of an overload for one call. */
import type { Overload } from "../functions.ts";
import { listType, mapType, type Type, typeType } from "../values/types.ts";

export interface Signature {
  readonly parameters: readonly Type[];
  readonly result: Type;
}

/** Replaces the type parameters by fresh ones, so that calls do not share bindings. */
export function instantiate({ parameters, result }: Overload, fresh: () => Type): Signature {
  const named = new Map<string, Type>();
  const rename = (type: Type): Type => {
    switch (type.kind) {
      case "parameter": {
        const replacement = named.get(type.name) ?? fresh();
        named.set(type.name, replacement);
        return replacement;
      }
      case "list":
        return listType(rename(type.element));
      case "map":
        return mapType(rename(type.key), rename(type.value));
      case "opaque":
        return type.parameters.length === 0 ? type : { ...type, parameters: type.parameters.map(rename) };
      case "type":
        return type.of === undefined ? type : typeType(rename(type.of));
      default:
        return type;
    }
  };
  return { parameters: parameters.map(rename), result: rename(result) };
}

/** In parts. `map(T, T)` has those of `T` twice, so that a few nested macros could make types of exponential size. */
export const TYPE_SIZE_MAX = 10_000;
const typeSizes = new WeakMap<Type, number>();

export function typeSize(type: Type): number {
  let size = typeSizes.get(type);
  if (size !== undefined) return size;
  size = 1;
  if (type.kind === "list") size += typeSize(type.element);
  else if (type.kind === "map") size += typeSize(type.key) + typeSize(type.value);
  else if (type.kind === "opaque") for (const parameter of type.parameters) size += typeSize(parameter);
  else if (type.kind === "type" && type.of !== undefined) size += typeSize(type.of);
  typeSizes.set(type, size);
  return size;
}
