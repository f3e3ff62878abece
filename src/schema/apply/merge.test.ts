import t from "tap";
import { example } from "../../testing/schema/apply-fixture.ts";
import { merge } from "./merge.ts";
import { shapeOf } from "./shape.ts";

const shape = shapeOf(example);
const items = (names: string) => [...names].map((name) => ({ name }));

const cases = [
  [
    "keeps fields that are not applied",
    { text: "a", map: { a: "1" } },
    { map: { b: "2" } },
    { text: "a", map: { a: "1", b: "2" } },
  ],
  ["replaces scalars", { text: "a" }, { text: "b" }, { text: "b" }],
  ["replaces atomic values", { atomicMap: { a: "1" } }, { atomicMap: { b: "2" } }, { atomicMap: { b: "2" } }],
  [
    "keeps containers that are applied empty or null",
    { map: { a: "1" }, set: ["a"] },
    { map: {}, set: null },
    { map: { a: "1" }, set: ["a"] },
  ],
  ["distinguishes empty from null", { map: null, set: [] }, { map: {}, set: null }, { map: {}, set: null }],
  ["replaces scalars by null", { text: "a" }, { text: null }, { text: null }],
  [
    "merges items by their keys",
    { list: [{ name: "a", value: "1" }] },
    { list: [{ name: "a", kind: "K" }] },
    { list: [{ name: "a", value: "1", kind: "K" }] },
  ],
  ["appends items", { list: items("ab") }, { list: items("c") }, { list: items("abc") }],
  ["uses the applied order", { list: items("abc") }, { list: items("cb") }, { list: items("acb") }],
  [
    "keeps live items after those they followed",
    { list: items("axbyc") },
    { list: items("cba") },
    { list: items("xyc").slice(0, 2).concat(items("cba")) },
  ],
  ["merges sets", { set: ["a", "b"] }, { set: ["c", "b"] }, { set: ["a", "c", "b"] }],
  [
    "keeps live items with duplicate keys unless one is applied",
    { list: [{ name: "a", value: "1" }, { name: "a", value: "2" }, { name: "b" }] },
    { list: [{ name: "c" }] },
    { list: [{ name: "a", value: "1" }, { name: "a", value: "2" }, { name: "b" }, { name: "c" }] },
  ],
  [
    "replaces several items by one applied item",
    {
      list: [
        { name: "a", value: "1" },
        { name: "a", value: "2" },
      ],
    },
    { list: [{ name: "a", value: "3" }] },
    { list: [{ name: "a", value: "3" }] },
  ],
  [
    "merges values without a schema",
    { anything: { a: 1, l: [1] } },
    { anything: { b: 2, l: [2] } },
    { anything: { a: 1, l: [2], b: 2 } },
  ],
] as const;

for (const [title, live, applied, expected] of cases) {
  t.test(`merge() ${title}`, (t) => {
    t.same(merge(shape, live, applied), expected);
    t.end();
  });
}

t.test("merge() returns unchanged values themselves", (t) => {
  const live = { text: "a", map: { a: "1" }, list: items("ab"), atomicMap: { a: "1" }, object: { text: "x" } };
  t.equal(merge(shape, live, structuredClone(live)), live);
  const merged = merge(shape, live, { text: "b" }) as typeof live;
  t.equal(merged.list, live.list);
  t.end();
});

t.test("merge() throws for items without identity", (t) => {
  t.throws(() => merge(shape, { list: items("a") }, { list: [{ value: "1" }] }), { name: "IdentityError" });
  t.end();
});
