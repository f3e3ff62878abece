import t from "tap";
import { compilePattern } from "./pattern.ts";

t.test("compilePattern() finds anywhere in the text, and knows what RE2 knows", async (t) => {
  t.ok(compilePattern("b+").test("abbc"));
  t.notOk(compilePattern("^b").test("abbc"));
  t.ok(compilePattern(String.raw`^\pL+\z`).test("žluť"));
  t.ok(compilePattern("(?i)^A$").test("a"));
});

t.test("compilePattern() refuses what RE2 refuses, in Go's words", async (t) => {
  const name = "PatternError";
  t.throws(() => compilePattern("("), { name, message: "error parsing regexp: missing closing ): `(`" });
  for (const source of ["(?=a)", String.raw`(a)\1`, "a**", "a{1001}", "[b-a]"]) {
    t.throws(() => compilePattern(source), { name }, source);
  }
});

t.test("compilePattern() takes time in proportion to the text", async (t) => {
  const began = performance.now();
  t.notOk(compilePattern("^(a+)+$").test(`${"a".repeat(5000)}!`));
  t.ok(performance.now() - began < 2000);
});
