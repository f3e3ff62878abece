import t from "tap";
import { example } from "../../testing/schema/apply-fixture.ts";
import { pathsOf, setOfPaths } from "./fieldpath/field-set.ts";
import { formatPath } from "./fieldpath/path-element.ts";
import { ensureNamedFieldsAreMembers } from "./named-members.ts";
import { shapeOf } from "./shape.ts";

t.test("ensureNamedFieldsAreMembers() adds declared members on the path to fields, and no others", (t) => {
  const item = 'k:{"kind":"K","name":"a"}';
  const set = setOfPaths(
    ["f:object", "f:text"],
    ["f:map", "f:x"],
    ["f:list", item, "f:name"],
    ["f:anything", "f:a", "f:b"],
  );
  const named = [...pathsOf(ensureNamedFieldsAreMembers(shapeOf(example), set))].map(formatPath);
  t.same(named.sort(), [
    ".anything",
    ".anything.a.b",
    ".list",
    '.list[kind="K",name="a"].name',
    ".map",
    ".map.x",
    ".object",
    ".object.text",
  ]);
  t.same([...pathsOf(ensureNamedFieldsAreMembers(undefined, set))], [...pathsOf(set)]);
  t.end();
});
