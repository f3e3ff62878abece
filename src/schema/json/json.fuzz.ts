/** Fuzzes the JSON parser and decoder: a decoded value that is encoded again decodes to the same value. */

import { everything, fuzz, sample } from "../../testing/schema/fuzz-harness.ts";
import { decode } from "../decode/decode.ts";
import { deepEqual } from "../value/equal.ts";
import { encodeJson } from "./encode.ts";
import { parseJson } from "./parse.ts";

fuzz({
  name: "json",
  samples: [
    Buffer.from(JSON.stringify(sample)),
    encodeJson(everything, sample),
    Buffer.from('[{"a":[1,-0.5e3,"\\u00fc"]}]'),
  ],
  words: [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    '"',
    "\\",
    "\\u",
    "\\ud83d",
    "null",
    "1e999",
    "-0",
    '"__proto__":',
    '"constructor":',
    '"self":{',
    "\0",
    "\xff",
    "{}",
    "[[[[",
    '"\\u0000"',
  ],
  read(input) {
    const { value, duplicates } = parseJson(input);
    const decoded = decode(everything, value);
    if (decoded.errors.length === 0 && typeof decoded.value === "object") {
      const again = decode(everything, parseJson(encodeJson(everything, decoded.value)).value);
      if (!deepEqual(again.value, decode(everything, parseJson(encodeJson(everything, again.value)).value).value)) {
        throw new Error("what was written reads otherwise");
      }
    }
    return [value, decoded.value, duplicates];
  },
  isRefusal: (error) => error instanceof SyntaxError,
});
