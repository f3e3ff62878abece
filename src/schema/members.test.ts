import t from "tap";
import { inline, object, optional, required, string } from "./define.ts";
import { memberOf, membersOf } from "./members.ts";
import type { ObjectSchema } from "./schema.ts";

const reference = object("t.Reference", { name: optional(1, string) });
const source: ObjectSchema = object("t.Source", {
  before: optional(2, string),
  reference: inline(1, reference),
  self: optional(3, (): ObjectSchema => source),
  after: required(4, string),
});

t.test("membersOf() flattens embedded structs in place and resolves lazy schemas", async (t) => {
  t.same(
    membersOf(source).map((member) => member.name),
    ["before", "name", "self", "after"],
  );
  t.equal(memberOf(source, "self")?.schema, source);
  t.equal(memberOf(source, "reference"), undefined);
  t.equal(memberOf(source, "__proto__"), undefined);
});
