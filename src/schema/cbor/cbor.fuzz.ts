/** Fuzzes the CBOR decoder: a decoded value that is encoded again decodes to the same value. */

import { everything, fuzz, sample } from "../../testing/schema/fuzz-harness.ts";
import { decode } from "../decode/decode.ts";
import { deepEqual } from "../value/equal.ts";
import { decodeCbor } from "./decode.ts";
import { encodeCbor, encodeCborValue } from "./encode.ts";
import { CborError } from "./error.ts";

const bytes = (hex: string) => Buffer.from(hex, "hex");

fuzz({
  name: "cbor",
  samples: [
    encodeCbor(everything, sample),
    encodeCborValue(sample),
    bytes("9f5f4161ffbf616101ffc11a514b67b0d64101f93c00ff"),
  ],
  words: [
    "__proto__",
    ...[
      "9f",
      "bf",
      "5f",
      "7f",
      "ff",
      "81",
      "a1",
      "d6",
      "d5",
      "c0",
      "c1",
      "c2",
      "d9d9f7",
      "f7",
      "f97e00",
      "fb7ff0000000000000",
      "1bffffffffffffffff",
      "9bffffffffffffffff",
      "5b7fffffffffffffff",
      "f818",
    ].map(bytes),
  ],
  read(input) {
    const value = decodeCbor(input);
    decode(everything, value);
    if (!deepEqual(decodeCbor(encodeCborValue(value)), value)) throw new Error("what was written reads otherwise");
    return value;
  },
  isRefusal: (error) => error instanceof CborError,
});
