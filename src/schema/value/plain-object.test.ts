import process from "node:process";
import t from "tap";
import { deepFreeze } from "./freeze.ts";
import { copyJson, countMembers, hasNoMembers, isPlainObject, setMember } from "./plain-object.ts";

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

t.test(
  "hasNoMembers() and countMembers() take the same time for an object of any size, after the first call",
  async (t) => {
    t.ok(hasNoMembers({}));
    t.notOk(hasNoMembers({ a: undefined }));
    t.equal(countMembers({ a: 1, b: 2 }), 2);
    const large = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, index]));
    t.equal(countMembers(large), 256);
    const began = process.threadCpuUsage().user;
    for (let call = 0; call < 1000; call++) if (hasNoMembers(large)) t.fail();
    const ms = (process.threadCpuUsage().user - began) / 1000;
    // Each call that lists the members takes some milliseconds.
    t.ok(ms < 500, `${ms} ms`);
  },
);

t.test("copyJson() returns what can be changed, without undefined members", async (t) => {
  const value = JSON.parse(`{"__proto__":{"a":1},"b":[{"c":null},[],"d",true],"e":{}}`) as Record<string, unknown>;
  const copy = copyJson(deepFreeze({ ...value, f: undefined, g: 9007199254740993n })) as Record<string, unknown[]>;
  t.same(Object.keys(copy), ["__proto__", "b", "e", "g"]);
  t.equal(JSON.stringify({ ...copy, g: 0 }), JSON.stringify({ ...value, g: 0 }));
  t.equal(copy.g, 9007199254740993n);
  copy.b?.push(1);
  t.equal((value.b as unknown[]).length, 4);
});
