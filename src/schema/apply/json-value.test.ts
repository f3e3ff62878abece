import t from "tap";
import { int32, list, map, object, optional, pointer, required, string, time } from "../define.ts";
import { toJsonValue } from "./json-value.ts";

const inner = object("test.Inner", { name: optional(1, string), made: optional(2, time), size: pointer(3, int32) });
const outer = object("test.Outer", {
  inner: optional(1, inner),
  inners: optional(2, list(inner)),
  byName: optional(3, map(inner)),
  names: required(4, list(string)),
  label: optional(5, string),
});

t.test("toJsonValue() adds members that JSON always contains and removes those it omits", (t) => {
  t.same(toJsonValue(outer, {}), { inner: { made: null }, names: null });
  t.same(toJsonValue(outer, { inner: { name: "" }, inners: [{ size: 0 }], byName: { a: {} }, names: [], label: "" }), {
    inner: { made: null },
    inners: [{ size: 0, made: null }],
    byName: { a: { made: null } },
    names: [],
  });
  t.end();
});

t.test("toJsonValue() returns an unchanged value itself", (t) => {
  const value = { inner: { name: "a", made: "2026-01-01T00:00:00Z" }, names: ["a"], label: "x" };
  t.equal(toJsonValue(outer, value), value);
  const changed = toJsonValue(outer, { ...value, label: "" }) as typeof value;
  t.equal(changed.inner, value.inner);
  t.end();
});
