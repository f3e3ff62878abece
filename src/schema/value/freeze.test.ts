import t from "tap";
import { deepFreeze } from "./freeze.ts";

t.test("deepFreeze() freezes recursively and returns its argument", async (t) => {
  const value = { a: [{ b: 1 }], c: { d: null } };
  t.equal(deepFreeze(value), value);
  t.ok(Object.isFrozen(value.a[0]) && Object.isFrozen(value.c));
  t.equal(deepFreeze("text"), "text");
  t.doesNotThrow(() => deepFreeze({ bytes: new Uint8Array([1]) }), "views cannot be frozen and are left alone");
});
