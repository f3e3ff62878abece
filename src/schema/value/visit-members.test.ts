import t from "tap";
import { type Visitor, visitMembers } from "./visit-members.ts";

t.test("visitMembers() visits members in order, and absent ones only with an absent handler", async (t) => {
  const visitor = (name: string | undefined, always = false): Visitor<unknown[]> => ({
    name,
    visit: (sink, value) => sink.push([name, value]),
    ...(always ? { absent: (sink) => sink.push([name, "absent"]) } : {}),
  });
  const visit = visitMembers([visitor("b"), visitor("a"), visitor("none"), visitor("zero", true), visitor(undefined)]);
  const object = { a: 0, b: "x", zero: null };
  const sink: unknown[] = [];
  visit(sink, object);
  t.same(sink, [
    ["b", "x"],
    ["a", 0],
    ["zero", "absent"],
    [undefined, object],
  ]);
});

t.test("visitMembers() quotes member names in the generated code", async (t) => {
  const names = ['"]; throw new Error("x"); //', "'\\", "\u2028\n", "__proto__", "constructor", "`x`"];
  const found: unknown[] = [];
  const visitors = names.map((name) => ({
    name,
    visit: (_: undefined, value: unknown) => {
      found.push(value);
    },
  }));
  const object = Object.create(null) as Record<string, unknown>;
  for (const name of names) object[name] = name;
  visitMembers(visitors)(undefined, object);
  t.same(found, names);
});
