import { RE2JS } from "re2js";
import t from "tap";
import { compilePattern } from "./pattern.ts";
import { patternSize } from "./pattern-size.ts";

t.test("compilePattern() matches anywhere in the text and supports RE2's syntax", async (t) => {
  t.ok(compilePattern("b+").test("abbc"));
  t.notOk(compilePattern("^b").test("abbc"));
  t.ok(compilePattern(String.raw`^\pL+\z`).test("žluť"));
  t.ok(compilePattern("(?i)^A$").test("a"));
});

t.test("compilePattern() rejects what RE2 rejects, with Go's messages", async (t) => {
  const name = "PatternError";
  t.throws(() => compilePattern("("), { name, message: "error parsing regexp: missing closing ): `(`" });
  for (const source of ["(?=a)", String.raw`(a)\1`, "a**", "a{1001}", "[b-a]"]) {
    t.throws(() => compilePattern(source), { name }, source);
  }
});

t.test("compilePattern() matches in linear time", async (t) => {
  const began = performance.now();
  t.notOk(compilePattern("^(a+)+$").test(`${"a".repeat(5000)}!`));
  t.ok(performance.now() - began < 2000);
});

t.test(
  "compilePattern() rejects expensive expressions, and test() is false when expression and text are both large",
  async (t) => {
    const name = "PatternError";
    for (const source of [".{1000}".repeat(1000), "((a{10}){10}){1000}", "a{500}(b{1000}){99}", "(x{1000}){51}"]) {
      t.throws(() => compilePattern(source), { name }, source.slice(0, 30));
    }
    t.throws(() => compilePattern(".{1000}".repeat(1000)), { message: "error parsing regexp: expression too large" });
    const large = compilePattern(".".repeat(40_000));
    t.ok(large.test("a".repeat(40_000)) === false && compilePattern("^a*$").test("a".repeat(1_572_864)));
  },
);

t.test("patternSize() estimates the number of instructions", async (t) => {
  const sources = [
    ...[
      "abc",
      "[a-z]{1,63}",
      "((ab){10}){100}",
      "(a|b)*c+d?",
      String.raw`\pL\p{Greek}{3}\x{10FFFF}\{5\}`,
      "[]a{5}]{20}",
    ],
    ...[
      "[[:alpha:]{9}]{30}",
      "a{2,}",
      "{",
      "a{,5}",
      "(?i:a{100})",
      String.raw`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+$`,
    ],
  ];
  for (const source of sources) {
    const size = RE2JS.compile(source).programSize();
    const about = patternSize(source);
    t.ok(about >= size / 3 && about <= size * 3 + 10, `${source}: ${about} of ${size}`);
  }
});
