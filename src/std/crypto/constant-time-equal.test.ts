import t from "tap";
import { constantTimeEqual } from "./constant-time-equal.ts";

t.test("constantTimeEqual() compares strings and bytes of any length", async (t) => {
  for (const [a, b] of [
    ["", ""],
    ["abc", "abc"],
    ["ä", Buffer.from("ä")],
  ] as const)
    t.ok(constantTimeEqual(a, b));
  for (const [a, b] of [
    ["", "a"],
    ["abc", "abd"],
    ["abc", "abcd"],
    ["ABC", "abc"],
    ["a", "a\0"],
  ] as const) {
    t.notOk(constantTimeEqual(a, b), `${a} ${b}`);
  }
});
