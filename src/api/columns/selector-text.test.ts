import t from "tap";
import { formatLabelSelector, formatLabels } from "./selector-text.ts";

t.test("formatLabels() sorts labels", async (t) => {
  t.equal(formatLabels({ b: "2", a: "1" }), "a=1,b=2");
  t.equal(formatLabels({}), "<none>");
  t.equal(formatLabels(undefined), "<none>");
});

t.test("formatLabelSelector() orders requirements by key", async (t) => {
  const matchExpressions = [
    { key: "e", operator: "DoesNotExist" },
    { key: "n", operator: "NotIn", values: ["z", "y"] },
    { key: "i", operator: "In", values: ["x"] },
    { key: "b", operator: "Exists" },
  ];
  const text = formatLabelSelector({ matchLabels: { z: "1", a: "2" }, matchExpressions });
  t.equal(text, "a=2,b,!e,i in (x),n notin (y,z),z=1");
  t.equal(formatLabelSelector({}), "<none>");
  t.equal(formatLabelSelector(undefined), "<none>");
});
