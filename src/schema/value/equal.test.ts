import t from "tap";
import { deepEqual } from "./equal.ts";

t.test("deepEqual() compares values, not identities", async (t) => {
  t.ok(deepEqual({ a: [1, { b: null }] }, { a: [1, { b: null }] }));
  t.ok(deepEqual({ a: 1, b: undefined }, { a: 1 }), "an undefined member is absent");
  t.ok(deepEqual(Number.NaN, Number.NaN));
  t.ok(deepEqual(new Uint8Array([1, 2]), Buffer.from([1, 2])));
  t.ok(deepEqual(1n, 1n));
});

t.test("deepEqual() is false for different values", async (t) => {
  const different: readonly (readonly [unknown, unknown])[] = [
    [{ a: 1 }, { a: 2 }],
    [{ a: 1 }, { b: 1 }],
    [{ a: undefined }, { b: 1 }],
    [[1], [1, 2]],
    [[], {}],
    [null, {}],
    ["1", 1],
    [new Uint8Array([1]), [1]],
    [
      { constructor: undefined, a: 1 },
      { a: 1, toString: 1 },
    ],
  ];
  for (const [a, b] of different) {
    t.notOk(deepEqual(a, b), JSON.stringify([a, b]));
    t.notOk(deepEqual(b, a), JSON.stringify([b, a]));
  }
});
