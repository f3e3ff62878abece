import t from "tap";
import { jsonMergePatch } from "./merge-patch.ts";

t.test("jsonMergePatch() passes the cases of RFC 7396, appendix A", async (t) => {
  const cases: readonly (readonly [unknown, unknown, unknown])[] = [
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [
      ["a", "b"],
      ["c", "d"],
      ["c", "d"],
    ],
    [{ a: "b" }, ["c"], ["c"]],
    [{ a: "foo" }, null, null],
    [{ a: "foo" }, "bar", "bar"],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    [{}, { a: [{ b: null, c: [{ d: null }] }, null] }, { a: [{ c: [{}] }, null] }],
    [{ a: [{ b: 1 }] }, { a: [{ b: null }] }, { a: [{}] }],
    [{ a: null }, { a: [{ b: null }] }, { a: [{}] }],
    [{ a: { b: 1 } }, { a: [{ b: null }] }, { a: [{ b: null }] }],
  ];
  for (const [current, patch, result] of cases) {
    const before = JSON.stringify(current);
    t.strictSame(jsonMergePatch(current, patch), result);
    t.equal(JSON.stringify(current), before, "the input is unchanged");
  }
});

t.test("jsonMergePatch() cannot change a prototype", async (t) => {
  const merged = jsonMergePatch({}, JSON.parse('{"__proto__":{"admin":true},"constructor":{"x":1}}')) as object;
  t.equal(Object.getPrototypeOf(merged), Object.prototype);
  t.same(Object.keys(merged), ["__proto__", "constructor"]);
});
