import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { int32, list, map, object, optional, pointer, rawExtension, string } from "./define.ts";
import { deepEqual } from "./equal.ts";
import type { ListSchema, ObjectSchema } from "./schema.ts";
import { PatchError, strategicMerge } from "./strategic-merge.ts";
import { parseYaml } from "./yaml.ts";

/** The type that Kubernetes' own merge cases are written for. */
const items = (): ListSchema => list(item);
const byName = { patchStrategy: "merge", patchMergeKey: "name" };
const item: ObjectSchema = object("t/v1.MergeItem", {
  name: optional(1, string),
  value: optional(2, string),
  other: optional(3, string),
  mergingList: optional(4, items, byName),
  nonMergingList: optional(5, items),
  mergingIntList: optional(6, list(int32), { patchStrategy: "merge" }),
  nonMergingIntList: optional(7, list(int32)),
  mergeItemPtr: pointer(8, (): ObjectSchema => item, byName),
  simpleMap: optional(9, map(string)),
  replacingItem: optional(10, rawExtension, { patchStrategy: "replace" }),
  retainKeysMap: optional(11, (): ObjectSchema => item, { patchStrategy: "retainKeys" }),
  retainKeysMergingList: optional(12, items, { patchStrategy: "merge,retainKeys", patchMergeKey: "name" }),
});

t.test("strategicMerge() merges lists by key, replaces others, and obeys directives", async (t) => {
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
    t.strictSame(strategicMerge(item, current, patch), result, title);
    t.equal(JSON.stringify([current, patch]), before, `${title}: inputs stay as they are`);
  }
});

t.test("strategicMerge() refuses patches that make no sense", async (t) => {
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
    { "$deleteFromPrimitiveList/mergingIntList": 1 },
    { $retainKeys: "name" },
    { $retainKeys: ["value"], name: "x" },
  ];
  for (const patch of bad) t.throws(() => strategicMerge(item, current, patch), PatchError, JSON.stringify(patch));
});

t.test("strategicMerge() cannot reach a prototype", async (t) => {
  const merged = strategicMerge(item, {}, JSON.parse('{"__proto__":{"x":1},"simpleMap":{"__proto__":"y"}}')) as object;
  t.equal(Object.getPrototypeOf(merged), Object.prototype);
});

interface Case {
  readonly description: string;
  readonly original?: unknown;
  readonly current?: unknown;
  readonly twoWay?: unknown;
  readonly threeWay?: unknown;
  readonly modified?: unknown;
  readonly twoWayResult?: unknown;
  readonly result?: unknown;
  readonly expectedError?: string;
}

const shared = process.env.SVC_SHARED ?? new URL("../../../shared", import.meta.url).pathname;
const tables = `${shared}/oracles/strategicpatch-tables/`;

function cases(): readonly Case[] {
  const json = [
    "strategicMergePatchRawTestCases",
    "customStrategicMergePatchRawTestCases",
    "replaceRawExtensionPatchTestCases",
  ];
  const raw = json.flatMap((name) => JSON.parse(readFileSync(`${tables}${name}.json`, "utf8")) as readonly Case[]);
  const [custom] = parseYaml(readFileSync(`${tables}customStrategicMergePatchTestCaseData.yaml`, "utf8"));
  return [...raw, ...((custom?.value ?? { testCases: [] }) as { readonly testCases: readonly Case[] }).testCases];
}

t.test("strategicMerge() answers Kubernetes' own cases", async (t) => {
  if (!existsSync(tables)) {
    t.comment("shared/ is not present: 217 checks left out");
    return;
  }
  let checked = 0;
  for (const one of cases()) {
    if (one.expectedError !== undefined) continue;
    for (const [current, patch, wanted] of [
      [one.original, one.twoWay, one.twoWayResult ?? one.modified],
      [one.current, one.threeWay, one.result],
    ]) {
      if (current === undefined || patch === undefined || wanted === undefined) continue;
      checked++;
      const result = strategicMerge(item, current, patch);
      if (!deepEqual(result, wanted)) t.strictSame(result, wanted, one.description);
    }
  }
  t.ok(checked >= 217, `${checked} cases`);
});
