import t from "tap";
import { warningHeaders } from "./warning-headers.ts";

t.test("warningHeaders() quotes texts and drops duplicates", async (t) => {
  t.same(warningHeaders(['unknown field "b"', "a\\c", 'unknown field "b"', ""]), [
    '299 - "unknown field \\"b\\""',
    '299 - "a\\\\c"',
  ]);
  t.same(warningHeaders(["line\nbreak", "fine"]), ['299 - "fine"']);
  t.same(warningHeaders(["ü"]), ['299 - "Ã¼"'], "the bytes of UTF-8");
});

t.test("warningHeaders() truncates texts over the total limit and drops further ones", async (t) => {
  const long = (n: number): string => `${n}`.padEnd(300, "x");
  t.equal(warningHeaders([long(1)])[0]?.length, 300 + '299 - ""'.length);
  const many = warningHeaders(Array.from({ length: 100 }, (_, n) => long(n)));
  t.equal(many.length, 16);
  t.equal(many[0]?.length, 256 + '299 - ""'.length);
  const short = (n: number): string => `${n}`.padEnd(64, "x");
  const exact = warningHeaders(Array.from({ length: 70 }, (_, n) => short(n)));
  t.equal(exact.length, 65, "the text that exceeds the limit, after 64 that reach it");
});
