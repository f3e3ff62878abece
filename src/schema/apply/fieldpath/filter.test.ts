import t from "tap";
import { pathsOf, setOfPaths } from "./field-set.ts";
import { excludeFields, includeFields } from "./filter.ts";
import { formatPath } from "./path-element.ts";

const item = 'k:{"name":"c"}';
const fields = setOfPaths(
  ["f:status"],
  ["f:status", "f:phase"],
  ["f:spec", "f:containers", item],
  ["f:spec", "f:containers", item, "f:resources", "f:limits"],
  ["f:spec", "f:containers", item, "f:image"],
  ["f:spec", "f:nodeName"],
);
const texts = (set: typeof fields): readonly string[] => [...pathsOf(set)].map(formatPath);

t.test("excludeFields() removes fields and all fields below them", (t) => {
  t.same(texts(excludeFields(setOfPaths(["f:status"], ["f:spec", "f:containers"]))(fields)), [".spec.nodeName"]);
  t.end();
});

t.test("includeFields() keeps matching fields, the fields below them and those on the path to them", (t) => {
  t.same(texts(includeFields(["spec", "containers", "*", "resources"])(fields)), [
    '.spec.containers[name="c"]',
    '.spec.containers[name="c"].resources.limits',
  ]);
  t.same(texts(includeFields(["nothing"])(fields)), []);
  t.end();
});
