import { ObjectValue } from "./object-value.ts";
import { MapValue, TypeValue, typeOfValue, type Value } from "./value.ts";

/** The name of the type of a value, without parameters, as error messages have it. */
export function typeNameOf(value: Value): string {
  return value instanceof MapValue && !(value instanceof ObjectValue) ? "map" : new TypeValue(typeOfValue(value)).name;
}
