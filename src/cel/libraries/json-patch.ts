/** `jsonpatch.escapeKey("a/b")`: the key as a part of a JSON pointer (RFC 6901). */
import { functionOf, type Library, overload } from "../functions.ts";
import { stringType } from "../values/types.ts";

export const jsonPatch: Library = {
  functions: [
    functionOf(
      "jsonpatch.escapeKey",
      overload("jsonpatch_escapeKey_string", [stringType], stringType, (key: string) =>
        key.replaceAll("~", "~0").replaceAll("/", "~1"),
      ),
    ),
  ],
};
