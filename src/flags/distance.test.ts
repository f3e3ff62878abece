import t from "tap";
import { editDistance, findNearest } from "./distance.ts";

t.test("editDistance() counts insertions, deletions, replacements and swaps", async (t) => {
  const cases: readonly [string, string, number][] = [
    ["", "", 0],
    ["", "abc", 3],
    ["port", "port", 0],
    ["port", "prot", 1],
    ["port", "ports", 1],
    ["port", "pert", 1],
    ["kitten", "sitting", 3],
  ];
  for (const [a, b, distance] of cases) {
    t.equal(editDistance(a, b), distance, `${a} ${b}`);
    t.equal(editDistance(b, a), distance, `${b} ${a}`);
  }
});

t.test("nearest() finds what was meant and nothing when all is far", async (t) => {
  const names = ["secure-port", "bind-address", "cert-dir"];
  t.equal(findNearest("secure-prot", names), "secure-port");
  t.equal(findNearest("Bind-Address", names), "bind-address");
  t.equal(findNearest("zzzz", names), undefined);
  t.equal(findNearest("x".repeat(10_000), names), undefined);
});
