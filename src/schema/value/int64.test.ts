import t from "tap";
import { formatInteger, int64ToNumber, numberToInt64 } from "./int64.ts";

t.test("integers survive the way to a number and back, or are refused", async (t) => {
  const largest = 2n ** 63n - 1n;
  const rows: readonly (readonly [bigint, boolean])[] = [
    [0n, true],
    [-7n, true],
    [2n ** 53n - 1n, true],
    [2n ** 53n, true],
    [2n ** 53n + 1n, false],
    [-(2n ** 53n) - 1n, false],
    [2n ** 60n, true],
    [largest - 1n, false],
    [largest, true],
    [-(2n ** 63n), true],
    [-(2n ** 63n) + 1n, false],
  ];
  for (const [integer, exact] of rows) {
    const number = int64ToNumber(integer);
    t.equal(number !== undefined, exact, `${integer}`);
    if (number === undefined) continue;
    t.equal(numberToInt64(number), integer, `${integer}`);
    t.equal(formatInteger(number), String(integer));
  }
  t.equal(formatInteger(largest), String(largest));
});
