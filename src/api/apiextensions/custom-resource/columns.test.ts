import t from "tap";
import type { ApiObject } from "../../kind.ts";
import { createCustomColumns } from "./columns.ts";

const items = Array.from({ length: 600 }, (_, n) => ({ n }));
const costly = { metadata: { name: "a" }, spec: { items, phase: "Ready" } } as ApiObject;
const definitions = [
  { name: "Phase", type: "string", jsonPath: ".spec.phase" },
  { name: "Last", type: "integer", jsonPath: "$.spec.items[?(@.n==$.spec.items[?(@.n==599)].n)].n" },
  { name: "Phase again", type: "string", jsonPath: ".spec.phase" },
];

t.test("the columns of a row share a budget, which each row has anew", async (t) => {
  const columns = createCustomColumns(definitions).slice(1);
  const row = () => columns.map(({ cell }) => cell(costly, 0));
  t.same(row(), ["Ready", null, null], "the path of the second column visits too many values");
  t.same(row(), ["Ready", null, null]);
  const cheap = { metadata: { name: "b" }, spec: { items: items.slice(-10), phase: "Ready" } } as ApiObject;
  t.same(
    columns.map(({ cell }) => cell(cheap, 0)),
    ["Ready", 599, "Ready"],
  );
});
