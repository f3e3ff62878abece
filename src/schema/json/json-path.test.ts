import t from "tap";
import { PathBudget, parseJsonPath, printValue } from "./json-path.ts";

const object = {
  metadata: { labels: { "a.b/c": "lab" } },
  spec: { s: "x", n: 1.5, l: ["p", "q", "r"], o: { k: "v", b: true } },
  status: {
    conditions: [
      { type: "Other", status: "False", age: 3 },
      { type: "Ready", status: "True", age: 9 },
    ],
  },
};

const found: readonly (readonly [path: string, values: readonly unknown[]])[] = [
  [".spec.s", ["x"]],
  ["{.spec.s}", ["x"]],
  ["$.spec['s']", ["x"]],
  ["spec.n", [1.5]],
  [".spec.missing.deeper", []],
  [String.raw`.metadata.labels.a\.b/c`, ["lab"]],
  [".metadata.labels['a.b/c']", ["lab"]],
  [".spec.l[0]", ["p"]],
  [".spec.l[-1]", ["r"]],
  [".spec.l[9]", []],
  [".spec.l[0,2]", ["p", "r"]],
  [".spec.l[1:]", ["q", "r"]],
  [".spec.l[0:3:2]", ["p", "r"]],
  [".spec.l[*]", ["p", "q", "r"]],
  [".spec.o.*", [true, "v"]],
  [".spec['s','n']", ["x", 1.5]],
  ['.status.conditions[?(@.type=="Ready")].status', ["True"]],
  [".status.conditions[?(@.age > 4)].type", ["Ready"]],
  [".status.conditions[?(@.type != 'Ready')].type", ["Other"]],
  [".status.conditions[?(@.missing)].type", []],
  ["..k", ["v"]],
  [".spec.s.length", []],
  [".spec.constructor", []],
];

for (const [path, values] of found) {
  t.test(`parseJsonPath() evaluates ${path}`, async (t) => t.same(parseJsonPath(path).find(object), values));
}

t.test("parseJsonPath() throws for invalid paths", async (t) => {
  for (const path of [".a[", ".a[x]", ".a[?(1 ~ 2)]", ".a[0:1:0]", ".a b", `.${"a".repeat(2000)}`]) {
    t.throws(() => parseJsonPath(path), { name: "JsonPathError" }, path.slice(0, 20));
  }
});

t.test("JsonPath.find() ends with repeated recursive descent", async (t) => {
  const deep = { a: { a: { a: { a: { a: { a: { a: 1 } } } } } } };
  t.ok(parseJsonPath(`${"..a".repeat(20)}`).find(deep).length <= 10_000);
});

t.test("JsonPath.find() finds nothing where nested filters would visit too many values", async (t) => {
  const items = Array.from({ length: 2000 }, (_, i) => ({ n: i }));
  const path = parseJsonPath("$.items[?(@.n==$.items[?(@.n==1999)].n)].n");
  t.same(path.find({ items }), []);
  t.same(path.find({ items: items.slice(-20) }), [1999]);
});

t.test("paths that share a budget find nothing after it is spent", async (t) => {
  const budget = new PathBudget(10);
  const path = parseJsonPath(".list[*]");
  t.same(path.find({ list: [1, 2, 3] }, budget), [1, 2, 3]);
  t.same(path.find({ list: [1, 2, 3, 4, 5, 6] }, budget), []);
  t.ok(budget.isSpent);
  t.same(path.find({ list: [1] }, budget), []);
});

t.test("printValue() formats strings unquoted and other values as JSON", async (t) => {
  t.same(
    [printValue("a"), printValue(5), printValue(["p"]), printValue({ b: 1, a: null })],
    ["a", "5", '["p"]', '{"a":null,"b":1}'],
  );
});
