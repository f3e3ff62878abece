import t from "tap";
import { matchesGlob, validateGlob } from "./glob.ts";

const cases: readonly [string, string, boolean][] = [
  ["pod-worker", "pod-worker", true],
  ["pod-worker", "pod-workers", false],
  ["pod*", "pod-worker", true],
  ["*worker", "pod-worker", true],
  ["*o*o*r", "pod-worker", true],
  ["*o*o*x", "pod-worker", false],
  ["*", "", true],
  ["", "", true],
  ["", "a", false],
  ["?", "a", true],
  ["?", "", false],
  ["p?d", "pod", true],
  ["[a-c]x", "bx", true],
  ["[a-c]x", "dx", false],
  ["[^a-c]x", "dx", true],
  ["[]]", "]", true],
  ["[ab-]", "-", true],
  ["a\\*", "a*", true],
  ["a\\*", "ab", false],
  ["a[", "a[", false],
];

t.test("matchesGlob() matches as Go's path.Match does", async (t) => {
  for (const [pattern, text, expected] of cases) t.equal(matchesGlob(pattern, text), expected, `${pattern} ${text}`);
});

t.test("matchesGlob() does not take exponential time", async (t) => {
  t.equal(matchesGlob(`${"*a".repeat(40)}b`, "a".repeat(2000)), false);
});

t.test("validateGlob() throws an error with the malformed pattern", async (t) => {
  validateGlob("a[b-c]*?\\*");
  for (const pattern of ["[", "a[b", "a\\"]) {
    t.throws(() => validateGlob(pattern), { message: `Cannot parse pattern "${pattern}": "[" or "\\" is not closed` });
  }
});
