import fc from "fast-check";
import t from "tap";
import { mergeItem as item, mergeCases } from "../../testing/schema/strategic-merge-cases.ts";
import { deepEqual } from "../value/equal.ts";
import { createThreeWayMergePatch, createTwoWayMergePatch } from "./strategic-diff.ts";
import { PatchError, strategicMergePatch } from "./strategic-merge.ts";

t.test("strategicDiff() and strategicDiffOf() make the patches that Kubernetes makes", async (t) => {
  const tables = [
    "createStrategicMergePatchTestCaseData.yaml",
    "strategicMergePatchRawTestCases.json",
    "replaceRawExtensionPatchTestCases.json",
  ];
  let checked = 0;
  for (const one of tables.flatMap(mergeCases)) {
    const { description, original, modified, current, twoWay, threeWay } = one;
    if (one.twoWayResult === undefined) {
      checked++;
      const patch = createTwoWayMergePatch(item, original, modified);
      if (!deepEqual(patch, twoWay)) t.strictSame(patch, twoWay, `${description}: two ways`);
    }
    checked++;
    const patch = createThreeWayMergePatch(item, { original, modified, current });
    if (!deepEqual(patch, threeWay)) t.strictSame(patch, threeWay, `${description}: three ways`);
  }
  if (checked === 0) t.comment("shared/ is not present: 229 checks left out");
  else t.ok(checked >= 229, `${checked} patches`);
});

t.test("strategicDiff() tells of a new order by order alone, and the patch brings it about", async (t) => {
  const cases = mergeCases("sortMergeListTestCaseData.yaml");
  let patches = 0;
  for (const { description, original, sorted } of cases) {
    if (isUnkeyed(original)) {
      t.throws(
        () => createTwoWayMergePatch(item, original, sorted),
        /does not contain declared merge key: name/,
        description,
      );
      continue;
    }
    const patch = createTwoWayMergePatch(item, original, sorted);
    patches++;
    t.strictSame(strategicMergePatch(item, original, patch), sorted, description);
    t.notMatch(JSON.stringify(patch), /\$patch|\$deleteFrom/, `${description}: nothing is deleted for it`);
    if (deepEqual(original, sorted)) t.strictSame(patch, {}, `${description}: no patch`);
  }
  if (cases.length === 0) t.comment("shared/ is not present: 8 cases left out");
  else t.same([cases.length, patches], [8, 7], "all cases, one of which has items without their key");
});

/** Kubernetes sorts such lists too, but makes no patch of them. */
function isUnkeyed(original: unknown): boolean {
  const { mergingList } = original as { readonly mergingList?: readonly { readonly name?: unknown }[] };
  return mergingList?.some((one) => one.name === undefined) ?? false;
}

t.test("strategicDiff() refuses what has no differences to speak of", async (t) => {
  t.throws(() => createTwoWayMergePatch(item, [], {}), PatchError);
  t.throws(
    () => createTwoWayMergePatch(item, { mergingList: [{ value: "x" }] }, { mergingList: [{ name: "a" }] }),
    PatchError,
  );
  t.same(createTwoWayMergePatch(item, undefined, { name: "x" }), { name: "x" });
});

const text = fc.constantFrom("a", "b", "c");
const { thing } = fc.letrec<{ thing: Record<string, unknown> }>((tie) => ({
  thing: fc.record(
    {
      value: text,
      other: text,
      simpleMap: fc.dictionary(text, text),
      nonMergingIntList: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 3 }),
      mergingIntList: fc.uniqueArray(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 4 }),
      mergingList: fc.uniqueArray(
        fc.record(
          { name: text, value: text, nonMergingList: fc.array(tie("thing"), { maxLength: 1 }) },
          { requiredKeys: ["name"] },
        ),
        { selector: ({ name }) => name, minLength: 1, maxLength: 3 },
      ),
      retainKeysMap: fc.record({ value: text, other: text }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  ),
}));

t.test("strategicMerge() of a difference makes what was wanted", async () => {
  fc.assert(
    fc.property(thing, thing, (original, modified) => {
      const patch = createTwoWayMergePatch(item, original, modified);
      return deepEqual(withoutEmpty(strategicMergePatch(item, original, patch)), withoutEmpty(modified));
    }),
    { numRuns: 500 },
  );
});

t.test("strategicDiffOf() of what has not changed meanwhile is strategicDiff()", async () => {
  fc.assert(
    fc.property(thing, thing, (original, modified) => {
      const patch = createThreeWayMergePatch(item, { original, modified, current: original });
      return deepEqual(withoutEmpty(strategicMergePatch(item, original, patch)), withoutEmpty(modified));
    }),
    { numRuns: 500 },
  );
});

/** Whether a member that merging has emptied is still there is the same to the API. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, withoutEmpty(member)] as const);
  return Object.fromEntries(members.filter(([, member]) => !deepEqual(member, {}) && !deepEqual(member, [])));
}
