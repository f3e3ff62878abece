/** Declares the functions of expanded macros for the type checker; the planner implements the loops. */
import { functionOf, type Library, overload } from "../functions.ts";
import { mapType, parameterType } from "../values/types.ts";
import { fail } from "../values/value.ts";

const k = parameterType("K");
const v = parameterType("V");
const map = mapType(k, v);

export const loops: Library = {
  functions: [
    functionOf(
      "cel.@mapInsert",
      overload("@mapInsert_map_key_value", [map, k, v], map, () => fail("no such overload")),
      overload("@mapInsert_map_map", [map, map], map, () => fail("no such overload")),
    ),
  ],
};
