import t from "tap";
import { countIndexes, firstShared, parseIndexes } from "./indexes.ts";

t.test("parseIndexes() parses ascending numbers and intervals", async (t) => {
  t.same(parseIndexes("", 1), []);
  const indexes = parseIndexes("0,2-4,9", 10);
  t.same(indexes, [
    { first: 0, last: 0 },
    { first: 2, last: 4 },
    { first: 9, last: 9 },
  ]);
  t.equal(countIndexes(indexes), 5);
});

t.test("parseIndexes() throws Kubernetes' messages", async (t) => {
  const cases = [
    ["x", 'cannot convert string to integer for index: "x"'],
    ["1,", 'cannot convert string to integer for index: ""'],
    ["5", 'too large index: "5"'],
    ["1-5", 'too large index: "5"'],
    ["3-1", "non-increasing order, previous: 3, current: 1"],
    ["2,2", "non-increasing order, previous: 2, current: 2"],
    ["0-2,1", "non-increasing order, previous: 2, current: 1"],
    [
      "1-2-3",
      `the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by '-'`,
    ],
  ] as const;
  for (const [text, message] of cases) t.throws(() => parseIndexes(text, 5), { message }, text);
});

t.test("firstShared() finds the first index that is in both sets", async (t) => {
  const of = (text: string) => parseIndexes(text, 100);
  t.equal(firstShared(of("1,5-9"), of("2-4,7-20")), 7);
  t.equal(firstShared(of("1,5-9"), of("2-4,10-20")), undefined);
  t.equal(firstShared(of(""), of("1")), undefined);
});
