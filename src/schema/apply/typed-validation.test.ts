import t from "tap";
import { anything, example } from "../../testing/schema/apply-fixture.ts";
import { shapeOf } from "./shape.ts";
import { validateTyped } from "./typed-validation.ts";

const cases = [
  [{ nothing: 1 }, ".nothing: field not declared in schema"],
  [{ text: 5 }, ".text: expected string, got &value.valueUnstructured{Value:5}"],
  [{ map: { x: ["a"] } }, '.map.x: expected string, got &value.valueUnstructured{Value:[]interface {}{"a"}}'],
  [{ count: "5" }, ".count: expected numeric (int or float), got string"],
  [{ map: "a" }, ".map: expected map, got &{a}"],
  [{ atomicMap: ["a", { b: 1 }] }, ".atomicMap: expected map, got &{[a map[b:1]]}"],
  [{ list: { a: 1 } }, ".list: expected list, got &{map[a:1]}"],
  [{ atomicList: ["a", true] }, ".atomicList[1]: expected string, got &value.valueUnstructured{Value:true}"],
  [{ set: ["a", "a"] }, '.set: duplicate entries for key [="a"]'],
  [{ list: [{ name: "a" }, { name: "a", kind: "K" }] }, '.list: duplicate entries for key [kind="K",name="a"]'],
  [
    { list: [{ kind: "a" }] },
    '.list: element 0: associative list with keys has an element that omits key field "name" (and doesn\'t have default value)',
  ],
  [
    { list: [{ name: "a", value: 1 }] },
    '.list[kind="K",name="a"].value: expected string, got &value.valueUnstructured{Value:1}',
  ],
  [
    { text: 1, count: true },
    "errors:\n  .text: expected string, got &value.valueUnstructured{Value:1}\n  .count: expected numeric (int or float), got bool",
  ],
] as const;

t.test("validateTyped() throws Kubernetes' messages for values that cannot be applied", (t) => {
  for (const [value, message] of cases)
    t.throws(() => validateTyped(shapeOf(example), value), { message, name: "ShapeError" });
  t.end();
});

t.test("validateTyped() accepts null everywhere, and any value without a schema", (t) => {
  t.doesNotThrow(() => validateTyped(shapeOf(example), { text: null, map: null, list: null, set: ["a"], count: 1 }));
  t.doesNotThrow(() => validateTyped(shapeOf(anything), { a: [1, { b: true }], c: { d: null } }));
  t.end();
});
