import t from "tap";
import { validateStorageClass } from "./validation.ts";

t.test("a topology term is a duplicate of each equal term before it, and empty terms of each term", async (t) => {
  const zone = (value: string) => ({ matchLabelExpressions: [{ key: "zone", values: [value] }] });
  const cases: readonly (readonly [terms: readonly object[], duplicates: readonly number[]])[] = [
    [[zone("a"), zone("b")], []],
    [
      [zone("a"), zone("a"), zone("a")],
      [1, 2, 2],
    ],
    [
      [zone("a"), {}],
      [1, 1],
    ],
    [
      [{}, {}],
      [0, 0, 1, 1, 1],
    ],
  ];
  for (const [terms, duplicates] of cases) {
    const found = validateStorageClass({
      provisioner: "csi.example.com",
      volumeBindingMode: "Immediate",
      allowedTopologies: terms as never,
    });
    t.same(
      found.map(({ field }) => field),
      duplicates.map((i) => `allowedTopologies[${i}].matchLabelExpressions`),
      JSON.stringify(terms),
    );
  }
});
