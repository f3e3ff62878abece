import t from "tap";
import { containsAll, repeatedIndexes } from "./repeated.ts";

t.test("repeatedIndexes() finds the items that equal an earlier one", async (t) => {
  t.same([...repeatedIndexes(["a", "b", "a", "a"])], [2, 3]);
  t.same([...repeatedIndexes([{ a: 1, b: 2 }, { b: 2, a: 1 }, { a: 1 }])], [1]);
});

t.test("containsAll() compares by value", async (t) => {
  t.ok(containsAll([{ a: 1 }, { b: 1, a: 1 }], [{ a: 1, b: 1 }]));
  t.notOk(containsAll([{ a: 1 }], [{ a: 1 }, { a: 2 }]));
});
