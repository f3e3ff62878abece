import t from "tap";
import { int32, list, map, object, optional, string } from "../define.ts";
import { parseJson } from "./parse.ts";
import { mergeRepeatedMembers } from "./repeated-members.ts";

const inner = object("test.Inner", { a: optional(1, int32), b: optional(2, int32) });
const schema = object("test.Outer", {
  data: optional(1, map(string)),
  inner: optional(2, inner),
  byName: optional(3, map(inner)),
  items: optional(4, list(inner)),
  text: optional(5, string),
});

t.test("mergeRepeatedMembers() merges objects and maps, and takes the last of other values", async (t) => {
  const cases: readonly (readonly [string, unknown])[] = [
    ['{"data":{"a":"1"},"data":{"b":"2"}}', { data: { a: "1", b: "2" } }],
    ['{"data":{"a":"1"},"data":{"a":"2"},"data":{"a":"3"}}', { data: { a: "3" } }],
    ['{"data":{"a":"1"},"data":null}', { data: null }],
    ['{"data":{"a":"1"},"data":null,"data":{"b":"2"}}', { data: { b: "2" } }],
    ['{"inner":{"a":1},"inner":null}', { inner: { a: 1 } }],
    ['{"inner":{"a":1},"inner":{"b":2,"b":3}}', { inner: { a: 1, b: 3 } }],
    ['{"byName":{"x":{"a":1},"x":{"b":2}}}', { byName: { x: { b: 2 } } }],
    ['{"items":[{"a":1}],"items":[{"b":2,"b":3}]}', { items: [{ b: 3 }] }],
    ['{"text":"a","text":"b","other":{"a":1},"other":{"b":2}}', { text: "b", other: { b: 2 } }],
    ['{"data":{"__proto__":"1"},"data":{"__proto__":"2"}}', { data: JSON.parse('{"__proto__":"2"}') }],
  ];
  for (const [text, merged] of cases) {
    const { scan } = parseJson(Buffer.from(text));
    t.same(mergeRepeatedMembers(schema, scan?.value), merged, text);
  }
});

t.test("mergeRepeatedMembers() takes linear time", async (t) => {
  const text = `{${Array.from({ length: 50_000 }, (_, n) => `"data":{"k${n}":"v"}`).join(",")}}`;
  const { scan } = parseJson(Buffer.from(text));
  const { data } = mergeRepeatedMembers(schema, scan?.value) as { readonly data: object };
  t.equal(Object.keys(data).length, 50_000);
});
