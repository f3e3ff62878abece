import t from "tap";
import { formatInteger, int64ToNumber, numberToInt64, parseSigned } from "./int64.ts";

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

t.test("texts are read as Go's ParseInt reads them", async (t) => {
  const rows: readonly (readonly [text: string, in32: bigint | undefined, in64: bigint | undefined])[] = [
    ["0", 0n, 0n],
    ["-0", 0n, 0n],
    ["+5", 5n, 5n],
    ["-0012", -12n, -12n],
    ["2147483647", 2147483647n, 2147483647n],
    ["2147483648", undefined, 2147483648n],
    ["-2147483648", -2147483648n, -2147483648n],
    ["9007199254740993", undefined, 9007199254740993n],
    ["9223372036854775807", undefined, 9223372036854775807n],
    ["9223372036854775808", undefined, undefined],
    ["-9223372036854775808", undefined, -9223372036854775808n],
    ["", undefined, undefined],
    ["-", undefined, undefined],
    ["1_000", undefined, undefined],
    ["0x10", undefined, undefined],
    ["1e3", undefined, undefined],
    [" 1", undefined, undefined],
    ["9".repeat(100_000), undefined, undefined],
  ];
  for (const [text, in32, in64] of rows) {
    t.equal(parseSigned(text, 32), in32, `${text.slice(0, 30)} in 32 bits`);
    t.equal(parseSigned(text, 64), in64, `${text.slice(0, 30)} in 64 bits`);
  }
});
