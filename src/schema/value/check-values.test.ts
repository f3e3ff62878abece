import t from "tap";
import { areLong, checkRootMembers, checkStoredValues, countValues } from "./check-values.ts";
import { storedValuesMax, TooManyValuesError } from "./limits.ts";

t.test("checkRootMembers() accepts as many members as the maximum, and roots that do not grow", async (t) => {
  const root = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));
  t.doesNotThrow(() => checkRootMembers(root(10_000)));
  t.throws(() => checkRootMembers(root(10_001)), { message: "more than 10000 members at the root" });
  t.doesNotThrow(() => checkRootMembers(root(10_002), root(10_002)));
  t.throws(() => checkStoredValues(root(10_003), root(10_002)));
});

t.test("countValues() counts members, items and containers", async (t) => {
  const value = { a: [1, { b: null }], c: Buffer.from("long enough"), d: {} };
  t.equal(countValues(value, 100), 7);
  t.equal(countValues("text", 1), 1);
  t.ok(countValues(Array(100_000).fill({}), 1000) <= 1002, "stops soon after the maximum");
});

t.test("checkStoredValues() accepts as many values as the maximum, and objects that do not grow", async (t) => {
  const of = (count: number) => ({ items: Array(count).fill(1) });
  t.doesNotThrow(() => checkStoredValues(of(storedValuesMax - 2), undefined));
  t.throws(() => checkStoredValues(of(storedValuesMax), undefined), TooManyValuesError);
  t.throws(() => checkStoredValues(of(storedValuesMax), of(1)), { message: "more than 200000 values" });
  t.doesNotThrow(() => checkStoredValues(of(2 * storedValuesMax), of(2 * storedValuesMax)));
  t.throws(() => checkStoredValues(of(2 * storedValuesMax), of(storedValuesMax)), TooManyValuesError);
});

t.test("areLong() is true when one of the values has many", async (t) => {
  t.notOk(areLong({ a: Array(900).fill("") }, undefined, null));
  t.ok(areLong(undefined, { a: { b: Array(1100).fill("") } }));
});
