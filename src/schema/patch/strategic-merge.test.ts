import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { mergeItem as item, mergeCases, oracles } from "../../testing/schema/strategic-merge-cases.ts";
import { deepEqual } from "../value/equal.ts";
import { PatchError, strategicMergePatch } from "./strategic-merge.ts";

t.test("strategicMergePatch() merges lists by key, replaces others, and applies directives", async (t) => {
  const a = { name: "a", value: "1" };
  const b = { name: "b", value: "2" };
  const cases: readonly (readonly [string, object, object, object])[] = [
    [
      "by key",
      { mergingList: [a, b] },
      { mergingList: [{ name: "b", value: "3" }] },
      { mergingList: [a, { ...b, value: "3" }] },
    ],
    ["new item", { mergingList: [a] }, { mergingList: [b] }, { mergingList: [b, a] }],
    ["atomic list", { nonMergingList: [a, b] }, { nonMergingList: [b] }, { nonMergingList: [b] }],
    ["delete item", { mergingList: [a, b] }, { mergingList: [{ name: "a", $patch: "delete" }] }, { mergingList: [b] }],
    ["replace list", { mergingList: [a, b] }, { mergingList: [b, { $patch: "replace" }] }, { mergingList: [b] }],
    ["replace object", { name: "x", value: "1" }, { $patch: "replace", other: "y" }, { other: "y" }],
    ["delete member", { name: "x", value: "1" }, { value: null }, { name: "x" }],
    ["delete map", { simpleMap: { k: "v" } }, { simpleMap: { $patch: "delete" } }, { simpleMap: {} }],
    [
      "primitives",
      { mergingIntList: [1, 2, 3] },
      { "$deleteFromPrimitiveList/mergingIntList": [2], mergingIntList: [4, 1] },
      { mergingIntList: [4, 1, 3] },
    ],
    [
      "order",
      { mergingList: [a, b] },
      { "$setElementOrder/mergingList": [{ name: "b" }, { name: "a" }] },
      { mergingList: [b, a] },
    ],
    [
      "retain",
      { retainKeysMap: { name: "x", value: "1" } },
      { retainKeysMap: { $retainKeys: ["value"], value: "2" } },
      { retainKeysMap: { value: "2" } },
    ],
    ["nulls of new members", {}, { simpleMap: { a: null, b: "c" } }, { simpleMap: { b: "c" } }],
  ];
  for (const [title, current, patch, result] of cases) {
    const before = JSON.stringify([current, patch]);
    t.strictSame(strategicMergePatch(item, current, patch), result, title);
    t.equal(JSON.stringify([current, patch]), before, `${title}: inputs stay as they are`);
  }
});

t.test("strategicMergePatch() throws for invalid patches", async (t) => {
  const current = { mergingList: [{ name: "a" }], mergingIntList: [1] };
  const bad: readonly unknown[] = [
    [],
    "x",
    { $patch: "explode" },
    { mergingList: [{ value: "no key" }] },
    { mergingList: [{ name: "a", $patch: "merge" }] },
    { mergingList: [1, { name: "a" }] },
    { "$setElementOrder/mergingList": {} },
    { "$setElementOrder/mergingList": [{ name: "b" }], mergingList: [{ name: "c" }] },
    { $retainKeys: "name" },
    { $retainKeys: ["value"], name: "x" },
  ];
  for (const patch of bad) t.throws(() => strategicMergePatch(item, current, patch), PatchError, JSON.stringify(patch));
});

t.test("strategicMergePatch() takes time linear in the number of items", async (t) => {
  const count = 50_000;
  const names = Array.from({ length: count }, (_, i) => ({ name: `n${i}` }));
  const numbers = names.map((_, i) => i);
  const reversed = { mergingList: [...names].reverse(), mergingIntList: [...numbers].reverse() };
  const current = { mergingList: names, mergingIntList: numbers };
  const order = { "$setElementOrder/mergingList": reversed.mergingList, "$setElementOrder/mergingIntList": numbers };
  const deleted = names.map((item) => ({ ...item, $patch: "delete" }));
  const kept = Object.fromEntries(numbers.map((number) => [`k${number}`, "v"]));
  const cases: readonly (readonly [string, object, object, object])[] = [
    ["reversed", current, reversed, reversed],
    ["new", {}, reversed, reversed],
    ["ordered", current, order, { mergingList: reversed.mergingList, mergingIntList: numbers }],
    ["equal", current, { mergingIntList: numbers.map(() => 1) }, current],
    ["delete items", current, { mergingList: deleted }, { mergingList: [], mergingIntList: numbers }],
    [
      "delete primitives",
      current,
      { "$deleteFromPrimitiveList/mergingIntList": numbers },
      { mergingList: names, mergingIntList: [] },
    ],
    ["retain keys", {}, { simpleMap: { $retainKeys: Object.keys(kept), ...kept } }, { simpleMap: kept }],
  ];
  for (const [title, live, patch, wanted] of cases) {
    const began = process.cpuUsage();
    const result = strategicMergePatch(item, live, patch) as { readonly mergingIntList?: readonly number[] };
    const { user } = process.cpuUsage(began);
    // A quadratic algorithm takes minutes.
    t.ok(user < 3_000_000, `${title}: ${user} us`);
    if (title === "equal") t.equal(result.mergingIntList?.length, count, title);
    else t.ok(deepEqual(result, wanted), title);
  }
});

t.test("strategicMergePatch() shortens the values in its errors", async (t) => {
  const long = { mergingList: Array.from({ length: 50_000 }, () => ({ value: "no key", $patch: "explode" })) };
  t.throws(() => strategicMergePatch(item, {}, { ...long, $patch: "explode" }), { name: "PatchError" });
  try {
    strategicMergePatch(item, {}, { ...long, $patch: "explode" });
  } catch (error) {
    t.ok((error as Error).message.length < 20_000, "bounded");
  }
});

t.test("strategicMergePatch() cannot change a prototype", async (t) => {
  const merged = strategicMergePatch(
    item,
    {},
    JSON.parse('{"__proto__":{"x":1},"simpleMap":{"__proto__":"y"}}'),
  ) as object;
  t.equal(Object.getPrototypeOf(merged), Object.prototype);
});

t.test("strategicMergePatch() passes Kubernetes' own cases", async (t) => {
  const tables = [
    "strategicMergePatchRawTestCases.json",
    "customStrategicMergePatchRawTestCases.json",
    "replaceRawExtensionPatchTestCases.json",
    "customStrategicMergePatchTestCaseData.yaml",
    "createStrategicMergePatchTestCaseData.yaml",
  ];
  const cases = tables.flatMap(mergeCases);
  if (cases.length === 0) {
    t.comment("shared/ is not present: 264 checks skipped");
    return;
  }
  let checked = 0;
  for (const one of cases) {
    for (const [current, patch, wanted] of [
      [one.original ?? {}, one.twoWay, one.twoWayResult ?? one.modified],
      [one.current, one.threeWay, one.result],
    ]) {
      if (one.expectedError !== undefined && patch !== undefined) {
        checked++;
        const message = new RegExp(one.expectedError);
        t.throws(() => strategicMergePatch(item, current, patch), { name: "PatchError", message }, one.description);
      }
      if (current === undefined || patch === undefined || wanted === undefined) continue;
      checked++;
      const result = strategicMergePatch(item, current, patch);
      if (!deepEqual(result, wanted)) t.strictSame(result, wanted, one.description);
    }
  }
  t.ok(checked >= 264, `${checked} cases`);
});

t.test("the schema of the cases equals the one that Kubernetes publishes for them", async (t) => {
  const path = `${oracles}/strategicpatch-schema/swagger-merge-item-v3.json`;
  if (!existsSync(path)) {
    t.comment("shared/ is not present: the comparison of schemas is skipped");
    return;
  }
  const document = JSON.parse(readFileSync(path, "utf8")) as {
    readonly components: {
      readonly schemas: { readonly mergeItem: { readonly properties: Readonly<Record<string, object>> } };
    };
  };
  const published = Object.entries(document.components.schemas.mergeItem.properties).map(([name, property]) => [
    name,
    Object.entries(property).filter(([marker]) => marker.startsWith("x-kubernetes-patch")),
  ]);
  const ours = Object.entries(item.fields).map(([name, { patchStrategy, patchMergeKey }]) => [
    name,
    [
      ...(patchMergeKey === undefined ? [] : [["x-kubernetes-patch-merge-key", patchMergeKey]]),
      ...(patchStrategy === undefined ? [] : [["x-kubernetes-patch-strategy", patchStrategy]]),
    ],
  ]);
  t.same(Object.fromEntries(ours), Object.fromEntries(published));
});
