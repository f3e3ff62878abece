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

t.test("arbitraryOf() draws what decode() takes", async () => {
  fc.assert(fc.property(drawn, (value) => decode(everything, value).errors.length === 0));
});

t.test("encodeProtobuf() writes equal values in equal bytes, and what it wrote is read as it was", async () => {
  fc.assert(
    fc.property(decoded, (value) => {
      const bytes = encodeProtobuf(everything, value);
      const again = encodeProtobuf(everything, decodeProtobuf(everything, bytes));
      return Buffer.compare(bytes, again) === 0;
    }),
    { numRuns: 500 },
  );
});

t.test("mergePatch() applied twice does what it does once, and an empty patch nothing", async () => {
  fc.assert(
    fc.property(decoded, decoded, (object, patch) => {
      const once = jsonMergePatch(object, patch);
      return deepEqual(jsonMergePatch(once, patch), once) && deepEqual(jsonMergePatch(object, {}), object);
    }),
  );
});
