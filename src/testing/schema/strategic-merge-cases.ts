/** For tests: Kubernetes' own cases of strategic merge patches, and the schema of their type. */
import { existsSync, readFileSync } from "node:fs";
import { int32, list, map, object, optional, pointer, rawExtension, string } from "../../schema/define.ts";
import type { ListSchema, ObjectSchema } from "../../schema/schema.ts";
import { parseYaml } from "../../schema/yaml/yaml.ts";

const items = (): ListSchema => list(mergeItem);
const byName = { patchStrategy: "merge", patchMergeKey: "name" };

export const mergeItem: ObjectSchema = object("t/v1.MergeItem", {
  name: optional(1, string),
  value: optional(2, string),
  other: optional(3, string),
  mergingList: optional(4, items, byName),
  nonMergingList: optional(5, items),
  mergingIntList: optional(6, list(int32), { patchStrategy: "merge" }),
  nonMergingIntList: optional(7, list(int32)),
  mergeItemPtr: pointer(8, (): ObjectSchema => mergeItem, byName),
  simpleMap: optional(9, map(string)),
  replacingItem: optional(10, rawExtension, { patchStrategy: "replace" }),
  retainKeysMap: optional(11, (): ObjectSchema => mergeItem, { patchStrategy: "retainKeys" }),
  retainKeysMergingList: optional(12, items, { patchStrategy: "merge,retainKeys", patchMergeKey: "name" }),
});

export interface MergeCase {
  readonly description: string;
  readonly original?: unknown;
  readonly current?: unknown;
  readonly twoWay?: unknown;
  readonly threeWay?: unknown;
  readonly modified?: unknown;
  readonly twoWayResult?: unknown;
  readonly result?: unknown;
  /** Only in the sorting table: the original with sorted lists. */
  readonly sorted?: unknown;
  readonly expectedError?: string;
}

const shared = process.env.SVC_SHARED ?? new URL("../../../../shared", import.meta.url).pathname;
export const oracles = `${shared}/oracles`;

/** The cases of a table; none when shared/ is not present. */
export function mergeCases(table: string): readonly MergeCase[] {
  const path = `${oracles}/strategicpatch-tables/${table}`;
  if (!existsSync(path)) return [];
  const text = readFileSync(path, "utf8");
  if (table.endsWith(".json")) return JSON.parse(text) as readonly MergeCase[];
  const { testCases } = (parseYaml(text)[0]?.value ?? {}) as { readonly testCases?: readonly MergeCase[] };
  return testCases ?? [];
}
