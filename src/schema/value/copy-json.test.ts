import t from "tap";
import { copyJson } from "./copy-json.ts";
import { deepFreeze } from "./freeze.ts";

t.test("copyJson() returns what can be changed, without undefined members", async (t) => {
  const value = JSON.parse(`{"__proto__":{"a":1},"b":[{"c":null},[],"d",true],"e":{}}`) as Record<string, unknown>;
  const copy = copyJson(deepFreeze({ ...value, f: undefined, g: 9007199254740993n })) as Record<string, unknown[]>;
  t.same(Object.keys(copy), ["__proto__", "b", "e", "g"]);
  t.equal(JSON.stringify({ ...copy, g: 0 }), JSON.stringify({ ...value, g: 0 }));
  t.equal(copy.g, 9007199254740993n);
  copy.b?.push(1);
  t.equal((value.b as unknown[]).length, 4);
});
