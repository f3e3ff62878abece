import t from "tap";
import { checkValues } from "./check-values.ts";
import { TooManyValuesError } from "./limits.ts";

t.test("checkValues() accepts as many values as the maximum", async (t) => {
  const value = { a: [1, { b: null }], c: Buffer.from("long enough"), d: {} };
  t.doesNotThrow(() => checkValues(value, 7));
  t.throws(() => checkValues(value, 6), TooManyValuesError);
  t.doesNotThrow(() => checkValues("text", 1));
  t.throws(() => checkValues(Array(100_000).fill({}), 1000), { message: "more than 1000 values" });
});
