import t from "tap";
import { Uint } from "../values/compare.ts";
import { Duration, Timestamp } from "../values/time-value.ts";
import { Optional } from "../values/value.ts";
import { toDynamicCelValue } from "./json-value.ts";
import { toJson } from "./to-json.ts";

t.test("toJson() returns what toDynamicCelValue() converts", async (t) => {
  const objects = [null, "a", true, 1.5, [1, "b", null], { a: { b: [] }, "": 7 }];
  for (const object of objects) t.strictSame(toJson(toDynamicCelValue(object)), object);
  const hostile = JSON.parse('{"__proto__": {"polluted": true}}');
  const copy = toJson(toDynamicCelValue(hostile)) as object;
  t.ok(Object.hasOwn(copy, "__proto__"));
  t.equal(Object.getPrototypeOf(copy), Object.prototype);
});

t.test("toJson() converts values that JSON lacks", async (t) => {
  t.equal(toJson(new Uint(7n)), 7);
  t.equal(toJson(2n ** 60n), 2n ** 60n, "not rounded");
  t.equal(toJson(Uint8Array.of(1, 2)), "AQI=");
  t.equal(toJson(new Duration(1_500_000_000n)), "1.5s");
  t.equal(toJson(Optional.none), null);
  t.equal(toJson(Optional.of("x")), "x");
  t.match(toJson(Timestamp.parse("2026-01-02T03:04:05Z")!), "2026-01-02T03:04:05Z");
});
