import t from "tap";
import { example } from "../../testing/schema/apply-fixture.ts";
import { pathsOf, setOf } from "./field-set.ts";
import { withNamedMembers } from "./named-members.ts";
import { pathText } from "./path-element.ts";
import { shapeOf } from "./shape.ts";

t.test("withNamedMembers() adds the members that the schema names, and no others that lead to fields", (t) => {
  const item = 'k:{"kind":"K","name":"a"}';
  const set = setOf(["f:object", "f:text"], ["f:map", "f:x"], ["f:list", item, "f:name"], ["f:anything", "f:a", "f:b"]);
  const named = [...pathsOf(withNamedMembers(shapeOf(example), set))].map(pathText);
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
  t.same([...pathsOf(withNamedMembers(undefined, set))], [...pathsOf(set)]);
  t.end();
});
