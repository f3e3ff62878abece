import t from "tap";
import { example } from "../../testing/schema/apply-fixture.ts";
import { setOfPaths } from "./fieldpath/field-set.ts";
import { extractItems, removeItems } from "./remove.ts";
import { shapeOf } from "./shape.ts";

const shape = shapeOf(example);
const value = {
  text: "a",
  map: { a: "1", b: "2" },
  atomicMap: { x: "1" },
  set: ["a", "b"],
  list: [{ name: "a", value: "1" }, { name: "b" }],
  anything: { p: { q: 1 } },
};
const item = 'k:{"kind":"K","name":"a"}';

const cases = [
  ["members", [["f:text"], ["f:map", "f:a"]], { ...value, text: undefined, map: { b: "2" } }],
  ["whole members", [["f:map"]], { ...value, map: undefined }],
  [
    "items",
    [
      ["f:list", item],
      ["f:set", 'v:"a"'],
    ],
    { ...value, list: [{ name: "b" }], set: ["b"] },
  ],
  ["members of items", [["f:list", item, "f:value"]], { ...value, list: [{ name: "a" }, { name: "b" }] }],
  ["an atomic value when a field inside is removed", [["f:atomicMap", "f:x"]], { ...value, atomicMap: null }],
  [
    "all members of a container, which becomes null",
    [
      ["f:map", "f:a"],
      ["f:map", "f:b"],
    ],
    { ...value, map: null },
  ],
  ["values without a schema", [["f:anything", "f:p", "f:q"]], { ...value, anything: { p: null } }],
  ["no absent fields", [["f:nothing"], ["f:list", 'k:{"kind":"K","name":"z"}']], value],
] as const;

for (const [title, paths, expected] of cases) {
  t.test(`removeItems() removes ${title}`, (t) => {
    t.same(removeItems(shape, value, setOfPaths(...paths)), JSON.parse(JSON.stringify(expected)));
    t.end();
  });
}

t.test("removeItems() returns an unchanged value itself", (t) => {
  t.equal(removeItems(shape, value, {}), value);
  const { list } = removeItems(shape, value, setOfPaths(["f:text"])) as typeof value;
  t.equal(list, value.list);
  t.end();
});

t.test("extractItems() keeps only the fields of the set", (t) => {
  const wanted = setOfPaths(
    ["f:text"],
    ["f:map", "f:a"],
    ["f:list", item],
    ["f:list", item, "f:name"],
    ["f:atomicMap"],
  );
  t.same(extractItems(shape, value, wanted), {
    text: "a",
    map: { a: "1" },
    list: [{ name: "a" }],
    atomicMap: { x: "1" },
  });
  t.equal(extractItems(shape, value, {}), null);
  t.end();
});
