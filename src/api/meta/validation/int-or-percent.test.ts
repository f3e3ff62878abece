import t from "tap";
import { intOrPercentValue, validateAtMostHundredPercent, validateIntOrPercent } from "./int-or-percent.ts";

t.test("validateIntOrPercent() accepts non-negative integers and percentages", async (t) => {
  for (const value of [undefined, 0, 7, "0%", "250%"]) t.same(validateIntOrPercent(value, "a"), [], String(value));
  for (const value of [-1, "", "7", "5.5%", "-5%", "x%"])
    t.equal(validateIntOrPercent(value, "a").length, 1, `${value}`);
});

t.test("validateAtMostHundredPercent() checks percentages only", async (t) => {
  for (const value of [undefined, 500, "100%", "x%"])
    t.same(validateAtMostHundredPercent(value, "a"), [], String(value));
  t.match(validateAtMostHundredPercent("101%", "a"), [{ field: "a", detail: "must not be greater than 100%" }]);
});

t.test("intOrPercentValue() returns the number of either form", async (t) => {
  for (const [value, amount] of [
    [3, 3],
    ["25%", 25],
    ["7", 7],
    ["x", 0],
    [undefined, 0],
  ] as const) {
    t.equal(intOrPercentValue(value), amount, String(value));
  }
});
