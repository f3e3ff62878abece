import t from "tap";
import { anything, example } from "../../testing/schema/apply-fixture.ts";
import { object, pointer, rawExtension } from "../define.ts";
import { compare } from "./compare.ts";
import { pathsOf } from "./fieldpath/field-set.ts";
import { formatPath } from "./fieldpath/path-element.ts";
import { shapeOf } from "./shape.ts";

const shape = shapeOf(example);

function changes(before: unknown, after: unknown, of = shape) {
  const { removed, modified, added } = compare(of, before, after);
  const texts = (set: typeof added): readonly string[] => [...pathsOf(set)].map(formatPath);
  return { removed: texts(removed), modified: texts(modified), added: texts(added) };
}

const cases = [
  ["scalars", { text: "a" }, { text: "b", count: 1 }, { modified: [".text"], added: [".count"] }],
  ["absent and undefined as equal", { text: undefined }, {}, {}],
  ["null as a value", { text: null }, { text: "a" }, { modified: [".text"] }],
  [
    "maps member by member",
    { map: { a: "1" } },
    { map: { a: "2", b: "1" } },
    { modified: [".map.a"], added: [".map.b"] },
  ],
  ["an added map", {}, { map: { a: "1" } }, { added: [".map", ".map.a"] }],
  ["a removed map", { map: { a: "1" } }, {}, { removed: [".map", ".map.a"] }],
  ["a map that loses all members", { map: { a: "1" } }, { map: {} }, { removed: [".map.a"] }],
  ["an added empty map", {}, { map: {} }, { added: [".map"] }],
  ["empty and null", { map: null, list: null }, { map: {}, list: [] }, { modified: [".list", ".map"] }],
  [
    "an atomic map as one field",
    { atomicMap: { a: "1" } },
    { atomicMap: { a: "1", b: "2" } },
    { modified: [".atomicMap"] },
  ],
  ["an atomic list as one field", { atomicList: ["a"] }, { atomicList: ["a", "b"] }, { modified: [".atomicList"] }],
  ["sets by value", { set: ["a", "b"] }, { set: ["b", "c"] }, { removed: ['.set[="a"]'], added: ['.set[="c"]'] }],
  ["sets in any order", { set: ["a", "b"] }, { set: ["b", "a"] }, {}],
  [
    "lists by key, with its default",
    {
      list: [
        { name: "a", value: "1" },
        { name: "b", kind: "Z", value: "1" },
      ],
    },
    { list: [{ name: "a", kind: "K", value: "2" }] },
    {
      removed: [
        '.list[kind="Z",name="b"]',
        '.list[kind="Z",name="b"].kind',
        '.list[kind="Z",name="b"].name',
        '.list[kind="Z",name="b"].value',
      ],
      modified: ['.list[kind="K",name="a"].value'],
      added: ['.list[kind="K",name="a"].kind'],
    },
  ],
  [
    "items whose keys become equal as one field",
    { list: [{ name: "a", value: "1" }] },
    {
      list: [
        { name: "a", value: "1" },
        { name: "a", value: "2" },
      ],
    },
    {
      removed: ['.list[kind="K",name="a"]', '.list[kind="K",name="a"].name', '.list[kind="K",name="a"].value'],
      added: ['.list[kind="K",name="a"]'],
    },
  ],
  [
    "changed items with a duplicate key",
    {
      list: [
        { name: "a", value: "1" },
        { name: "a", value: "2" },
      ],
    },
    {
      list: [
        { name: "a", value: "1" },
        { name: "a", value: "3" },
      ],
    },
    { modified: ['.list[kind="K",name="a"]'] },
  ],
  [
    "items whose keys become distinct",
    { set: ["a", "a"] },
    { set: ["a"] },
    { removed: ['.set[="a"]'], added: ['.set[="a"]'] },
  ],
] as const;

for (const [title, before, after, expected] of cases) {
  t.test(`compare() compares ${title}`, (t) => {
    t.same(changes(before, after), { removed: [], modified: [], added: [], ...expected });
    t.same(changes(before, before), { removed: [], modified: [], added: [] });
    t.end();
  });
}

t.test("compare() derives the shape from the value without a schema", (t) => {
  const of = shapeOf(anything);
  t.same(changes({ a: { b: 1 }, c: [1] }, { a: { b: 2 }, c: [2] }, of), {
    removed: [],
    modified: [".c", ".a.b"],
    added: [],
  });
  t.same(changes({ a: 1 }, { a: { b: 1 } }, of), { removed: [], modified: [".a"], added: [".a.b"] });
  t.same(changes({ a: { b: 1 } }, { a: [1] }, of), { removed: [".a.b"], modified: [".a"], added: [] });
  t.same(changes({ a: null }, { a: { b: 1 } }, of), { removed: [], modified: [], added: [".a.b"] });
  t.end();
});

t.test("compare() takes a RawExtension as one value", (t) => {
  const of = shapeOf(object("test.Revision", { data: pointer(1, rawExtension) }));
  t.same(changes({}, { data: { a: { b: 1 } } }, of), { removed: [], modified: [], added: [".data"] });
  t.same(changes({ data: { a: 1, b: 1 } }, { data: { a: 2, b: 1 } }, of), {
    removed: [],
    modified: [".data"],
    added: [],
  });
  t.same(changes({ data: { a: 1 } }, { data: { a: 1 } }, of), { removed: [], modified: [], added: [] });
  t.end();
});

t.test("compare() throws for items without identity", (t) => {
  t.throws(() => compare(shape, {}, { list: [{ value: "1" }] }), { name: "IdentityError" });
  t.throws(() => compare(shape, {}, { list: ["a"] }), { name: "IdentityError" });
  t.throws(() => compare(shape, {}, { list: [null] }), { name: "IdentityError" });
  t.throws(() => compare(shape, {}, { set: [null] }), { name: "IdentityError" });
  t.throws(() => compare(shape, {}, { set: [["a"]] }), { name: "IdentityError" });
  t.throws(() => compare(shape, {}, { set: [{}] }), { name: "IdentityError" });
  t.end();
});

t.test("compare() handles members named like inherited properties", (t) => {
  const hostile = JSON.parse('{"map":{"__proto__":"x","constructor":"y","toString":"z"}}');
  t.same(changes({ map: {} }, hostile).added, [".map.__proto__", ".map.constructor", ".map.toString"]);
  t.same(changes(hostile, hostile).modified, []);
  t.end();
});
