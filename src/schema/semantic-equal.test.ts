import t from "tap";
import {
  boolean,
  duration,
  int32,
  intOrString,
  list,
  map,
  microTime,
  object,
  optional,
  pointer,
  quantity,
  required,
  string,
  time,
} from "./define.ts";
import { semanticEqual } from "./semantic-equal.ts";

const part = object("t/v1.Part", { name: optional(1, string) });
const thing = object("t/v1.Thing", {
  name: required(1, string),
  labels: optional(2, map(string)),
  items: optional(3, list(part)),
  part: optional(4, part),
  pointed: pointer(5, part),
  flag: pointer(6, boolean),
  count: optional(7, int32),
  amounts: optional(8, map(quantity)),
});

t.test("semanticEqual() treats an omitted member as its empty value", async (t) => {
  const bare = { name: "" };
  t.ok(semanticEqual(thing, bare, { labels: {}, items: [], part: {}, count: 0 }));
  t.ok(semanticEqual(thing, { items: [{}] }, { items: [{ name: "" }] }));
  t.notOk(semanticEqual(thing, bare, { pointed: {} }));
  t.notOk(semanticEqual(thing, bare, { flag: false }));
  t.notOk(semanticEqual(thing, bare, { items: [{}] }));
  t.notOk(semanticEqual(thing, { labels: { a: "b" } }, { labels: { a: "c" } }));
});

t.test("semanticEqual() compares quantities by amount", async (t) => {
  t.ok(semanticEqual(thing, { amounts: { cpu: "1" } }, { amounts: { cpu: "1000m" } }));
  t.notOk(semanticEqual(thing, { amounts: { cpu: "1" } }, { amounts: { cpu: "1001m" } }));
  t.notOk(semanticEqual(thing, { amounts: { cpu: "1" } }, { amounts: { memory: "1" } }));
});

for (const [name, schema, zero] of [
  ["string", string, ""],
  ["int32", int32, 0],
  ["boolean", boolean, false],
  ["quantity", quantity, "0"],
  ["a quantity with a unit", quantity, "0Mi"],
  ["intOrString", intOrString, 0],
  ["duration", duration, "0s"],
  ["time", time, null],
  ["microTime", microTime, null],
] as const) {
  t.test(`semanticEqual() treats an omitted ${name} as its zero value, but not an omitted pointer`, async (t) => {
    const plain = object("t/v1.Plain", { a: optional(1, schema) });
    for (const absent of [{}, { a: undefined }]) {
      t.ok(semanticEqual(plain, absent, { a: zero }));
      t.ok(semanticEqual(plain, { a: zero }, absent));
    }
    const pointed = object("t/v1.Pointed", { a: pointer(1, schema) });
    if (zero !== null) t.notOk(semanticEqual(pointed, {}, { a: zero }));
  });
}
