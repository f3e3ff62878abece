import t from "tap";
import { parseRanges } from "./byte-ranges.ts";

t.test("ranges of a body are parsed as in Go", async (t) => {
  const invalid = "invalid range";
  const none = "invalid range: failed to overlap";
  for (const [header, size, expected] of [
    ["", 10, []],
    ["bytes=0-1", 10, [[0, 2]]],
    ["bytes=2-", 10, [[2, 8]]],
    ["bytes=-3", 10, [[7, 3]]],
    ["bytes=-30", 10, [[0, 10]]],
    ["bytes=0-99", 10, [[0, 10]]],
    [
      "bytes= 0 - 0 ,, -1,",
      10,
      [
        [0, 1],
        [9, 1],
      ],
    ],
    ["bytes=3-2", 10, invalid],
    ["bytes=-", 10, invalid],
    ["bytes=1", 10, invalid],
    ["bytes=x-1", 10, invalid],
    ["bytes=--1", 10, invalid],
    ["lines=0-1", 10, invalid],
    ["bytes=10-", 10, none],
    ["bytes=10-,0-0", 10, [[0, 1]]],
    ["bytes=0-1", 0, []],
    ["bytes=-2", 0, [[0, 0]]],
  ] as const) {
    const parsed = parseRanges(header, size);
    t.same(typeof parsed === "string" ? parsed : parsed.map(({ start, length }) => [start, length]), expected, header);
  }
});
