import t from "tap";
import { goQuote, goQuoteByte } from "./go-quote.ts";

t.test("goQuote() escapes non-printable characters as Go does", async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ["web", '"web"'],
    ['a"b\\c', '"a\\"b\\\\c"'],
    ["a\x01\x7f", '"a\\x01\\x7f"'],
    ["a\nb\tc\x07", '"a\\nb\\tc\\a"'],
    ["grüße 世界", '"grüße 世界"'],
    ["\u00a0\u2028", '"\\u00a0\\u2028"'],
    ["\u{1f600}\u{e0001}", '"\u{1f600}\\U000e0001"'],
  ];
  for (const [text, quoted] of cases) t.equal(goQuote(text), quoted);
});

t.test("goQuoteByte() formats a byte as the Latin-1 character", async (t) => {
  t.same([0x27, 0x22, 0x01, 0xef, 0x0a, 0x80].map(goQuoteByte), [
    "'\\''",
    "'\"'",
    "'\\x01'",
    "'ï'",
    "'\\n'",
    "'\\u0080'",
  ]);
});
