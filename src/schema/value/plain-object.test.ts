import t from "tap";
import { isPlainObject, setMember } from "./plain-object.ts";

t.test("setMember() sets __proto__ as an own member", async (t) => {
  const target: Record<string, unknown> = {};
  setMember(target, "__proto__", { admin: true });
  t.equal(Object.getPrototypeOf(target), Object.prototype);
  t.same(Object.keys(target), ["__proto__"]);
  t.equal(target.admin, undefined);
});

t.test("isPlainObject() is false for lists, bytes and null", async (t) => {
  t.ok(isPlainObject({}));
  for (const other of [null, [], new Uint8Array(), "x", 1, undefined]) t.notOk(isPlainObject(other));
});
