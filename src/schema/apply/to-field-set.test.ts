import t from "tap";
import { anything, example } from "../../testing/schema/apply-fixture.ts";
import { sizeOf } from "./fieldpath/field-set.ts";
import { shapeOf } from "./shape.ts";
import { toFieldSet } from "./to-field-set.ts";

const cases = [
  ["scalars and null", { text: "a", count: null }, { "f:count": {}, "f:text": {} }],
  ["empty maps, not empty lists", { map: {}, list: [], set: [] }, { "f:map": {} }],
  ["members of maps", { map: { a: "1" } }, { "f:map": { "f:a": {} } }],
  ["members of objects", { object: { text: "a" } }, { "f:object": { "f:text": {} } }],
  [
    "atomic maps and lists as one field",
    { atomicMap: { a: "1" }, atomicList: [] },
    { "f:atomicList": {}, "f:atomicMap": {} },
  ],
  ["items of sets", { set: ["b", "a"] }, { "f:set": { 'v:"a"': {}, 'v:"b"': {} } }],
  [
    "items of lists, keys by default",
    { list: [{ name: "a", value: "1" }, { name: "b" }] },
    {
      "f:list": {
        'k:{"kind":"K","name":"a"}': { ".": {}, "f:name": {}, "f:value": {} },
        'k:{"kind":"K","name":"b"}': { ".": {}, "f:name": {} },
      },
    },
  ],
  [
    "items with a duplicate key as one field",
    {
      list: [
        { name: "a", value: "1" },
        { name: "a", value: "2" },
      ],
    },
    { "f:list": { 'k:{"kind":"K","name":"a"}': {} } },
  ],
  [
    "values without a schema",
    { anything: { a: { b: [1], c: {} } } },
    { "f:anything": { "f:a": { ".": {}, "f:b": {}, "f:c": {} } } },
  ],
] as const;

for (const [title, value, expected] of cases) {
  t.test(`toFieldSet() returns ${title}`, (t) => {
    t.equal(JSON.stringify(toFieldSet(shapeOf(example), value)), JSON.stringify(expected));
    t.end();
  });
}

t.test("toFieldSet() throws for items without identity, and handles any depth without a schema", (t) => {
  t.throws(() => toFieldSet(shapeOf(example), { list: [{}] }), { name: "IdentityError" });
  let deep: unknown = 1;
  for (let level = 0; level < 150; level++) deep = { a: deep };
  t.equal(sizeOf(toFieldSet(shapeOf(anything), deep)), 150);
  t.end();
});
