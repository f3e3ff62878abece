import t from "tap";
import { pathsOf, setOf } from "./field-set.ts";
import { only, without } from "./filter.ts";
import { pathText } from "./path-element.ts";

const item = 'k:{"name":"c"}';
const fields = setOf(
  ["f:status"],
  ["f:status", "f:phase"],
  ["f:spec", "f:containers", item],
  ["f:spec", "f:containers", item, "f:resources", "f:limits"],
  ["f:spec", "f:containers", item, "f:image"],
  ["f:spec", "f:nodeName"],
);
const texts = (set: typeof fields): readonly string[] => [...pathsOf(set)].map(pathText);

t.test("without() leaves out fields and what lies below them", (t) => {
  t.same(texts(without(setOf(["f:status"], ["f:spec", "f:containers"]))(fields)), [".spec.nodeName"]);
  t.end();
});

t.test("only() keeps what fits, what lies below it and what leads to it", (t) => {
  t.same(texts(only(["spec", "containers", "*", "resources"])(fields)), [
    '.spec.containers[name="c"]',
    '.spec.containers[name="c"].resources.limits',
  ]);
  t.same(texts(only(["nothing"])(fields)), []);
  t.end();
});
