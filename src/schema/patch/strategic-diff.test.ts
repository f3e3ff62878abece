import fc from "fast-check";
import t from "tap";
import { mergeItem as item, mergeCases } from "../../testing/schema/strategic-merge-cases.ts";
import { deepEqual } from "../value/equal.ts";
import { createThreeWayMergePatch, createTwoWayMergePatch } from "./strategic-diff.ts";
import { PatchError, strategicMergePatch } from "./strategic-merge.ts";

t.test("createTwoWayMergePatch() and createThreeWayMergePatch() create Kubernetes' patches", async (t) => {
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
  if (checked === 0) t.comment("shared/ is not present: 229 checks skipped");
  else t.ok(checked >= 229, `${checked} patches`);
});

t.test(
  "createTwoWayMergePatch() represents a new order only by $setElementOrder, and applying it restores the order",
  async (t) => {
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
    if (cases.length === 0) t.comment("shared/ is not present: 8 cases skipped");
    else t.same([cases.length, patches], [8, 7], "all cases, one of which has items without their key");
  },
);

/** Kubernetes' cases also sort such lists, but it creates no patches for them. */
function isUnkeyed(original: unknown): boolean {
  const { mergingList } = original as { readonly mergingList?: readonly { readonly name?: unknown }[] };
  return mergingList?.some((one) => one.name === undefined) ?? false;
}

t.test("createTwoWayMergePatch() throws for values without merge keys", async (t) => {
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

t.test("strategicMergePatch() of a two-way patch results in the modified value", async () => {
  fc.assert(
    fc.property(thing, thing, (original, modified) => {
      const patch = createTwoWayMergePatch(item, original, modified);
      return deepEqual(withoutEmpty(strategicMergePatch(item, original, patch)), withoutEmpty(modified));
    }),
    { numRuns: 500 },
  );
});

t.test("createThreeWayMergePatch() equals createTwoWayMergePatch() when current equals original", async () => {
  fc.assert(
    fc.property(thing, thing, (original, modified) => {
      const patch = createThreeWayMergePatch(item, { original, modified, current: original });
      return deepEqual(withoutEmpty(strategicMergePatch(item, original, patch)), withoutEmpty(modified));
    }),
    { numRuns: 500 },
  );
});

/** Treats empty and absent members alike, as the API does. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, withoutEmpty(member)] as const);
  return Object.fromEntries(members.filter(([, member]) => !deepEqual(member, {}) && !deepEqual(member, [])));
}
