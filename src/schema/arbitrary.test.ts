import fc from "fast-check";
import t from "tap";
import { arbitraryOf } from "../testing/schema/arbitrary.ts";
import { everything } from "../testing/schema/fuzz-harness.ts";
import { decode } from "./decode/decode.ts";
import { jsonMergePatch } from "./patch/merge-patch.ts";
import { decodeProtobuf } from "./protobuf/decode.ts";
import { encodeProtobuf } from "./protobuf/encode.ts";
import { deepEqual } from "./value/equal.ts";

const drawn = arbitraryOf(everything);
const decoded = drawn.map((value) => decode(everything, value).value as Readonly<Record<string, unknown>>);

t.test("arbitraryOf() generates values that decode() accepts", async () => {
  fc.assert(fc.property(drawn, (value) => decode(everything, value).errors.length === 0));
});

t.test(
  "encodeProtobuf() encodes equal values to equal bytes, and decodeProtobuf() returns the same value",
  async () => {
    fc.assert(
      fc.property(decoded, (value) => {
        const bytes = encodeProtobuf(everything, value);
        const again = encodeProtobuf(everything, decodeProtobuf(everything, bytes));
        return Buffer.compare(bytes, again) === 0;
      }),
      { numRuns: 500 },
    );
  },
);

t.test("jsonMergePatch() is idempotent, and an empty patch changes nothing", async () => {
  fc.assert(
    fc.property(decoded, decoded, (object, patch) => {
      const once = jsonMergePatch(object, patch);
      return deepEqual(jsonMergePatch(once, patch), once) && deepEqual(jsonMergePatch(object, {}), object);
    }),
  );
});
