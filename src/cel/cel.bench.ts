/**
 * Run by `make bench`: one JSON line for each rule, with the microseconds and bytes of
 * heap that compiling and one evaluation take.
 */
import { int64, list, listMap, map, object, optional, string } from "../schema/define.ts";
import { nameFormats } from "../testing/cel/name-formats.ts";
import { cpuMicroseconds, heapBytes } from "../testing/std/measure.ts";
import { toCelValue } from "./adapter/json-value.ts";
import { celTypeOf } from "./adapter/schema-type.ts";
import { compile } from "./cel.ts";
import { createEnvironment } from "./environment.ts";
import { dynType } from "./values/types.ts";

const schema = object("Bench", {
  replicas: optional(1, int64),
  maxReplicas: optional(2, int64),
  name: optional(3, string),
  items: optional(4, listMap(object("Item", { name: optional(1, string), size: optional(2, int64) }), "name")),
  tags: optional(5, list(string)),
  labels: optional(6, map(string)),
});
const object100 = {
  replicas: 3,
  maxReplicas: 10,
  name: "web-frontend",
  items: Array.from({ length: 100 }, (_, i) => ({ name: `item-${i}`, size: i })),
  tags: Array.from({ length: 100 }, (_, i) => `tag-${i}`),
  labels: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`label-${i}`, `value-${i}`])),
};
const rules = [
  "self.replicas <= self.maxReplicas",
  "self.name == oldSelf.name",
  "!has(self.name) || self.name.startsWith('web-')",
  "self.items.all(i, i.name.matches('^[a-z]+-[0-9]+$'))",
  "self.items.all(i, i.size >= 0 && i.size < 1000)",
  "self.items.filter(i, i.size > 50).map(i, i.name).exists(n, n == 'item-99')",
  "self.tags.all(t, t.size() < 64) && 'tag-7' in self.tags",
  "self.labels.all(k, k.startsWith('label-') && self.labels[k] != '')",
  "self.items == oldSelf.items",
  "quantity('1Gi').isGreaterThan(quantity('512Mi'))",
];

const self = celTypeOf(schema) ?? dynType;
const environment = createEnvironment({ variables: { self, oldSelf: self }, nameFormats });
for (const rule of rules) {
  const { program } = compile(rule, environment);
  if (program === undefined) throw new Error(`Cannot compile ${rule}`);
  const evaluate = (): unknown =>
    program.evaluate({ self: toCelValue(schema, object100), oldSelf: toCelValue(schema, object100) });
  console.log(
    JSON.stringify({
      rule,
      compile: figures(() => compile(rule, environment)),
      estimate: figures(() => compile(rule, environment).program?.estimate),
      evaluate: figures(evaluate),
    }),
  );
}

function figures(run: () => unknown): { readonly microseconds: number; readonly bytes: number } {
  return { microseconds: cpuMicroseconds(run), bytes: heapBytes(run) };
}
