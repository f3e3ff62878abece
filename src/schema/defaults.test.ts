import t from "tap";
import { applyDefaults, applyStoredDefaults } from "./defaults.ts";
import { boolean, list, map, object, optional, pointer, string } from "./define.ts";
import type { ObjectSchema } from "./schema.ts";
import { TooManyValuesError } from "./value/limits.ts";

const port = object("t/v1.Port", { protocol: optional(1, string, { default: "TCP" }) });
const spec: ObjectSchema = object("t/v1.Spec", {
  ports: optional(1, list(port)),
  byName: optional(2, map(port)),
  on: pointer(3, boolean, { default: true }),
  name: optional(4, string, { default: "" }),
  next: pointer(5, (): ObjectSchema => spec),
});

t.test("applyDefaults() sets absent fields at any depth", async (t) => {
  t.strictSame(applyDefaults(spec, { ports: [{}, { protocol: "UDP" }], byName: { a: {} }, next: {} }), {
    ports: [{ protocol: "TCP" }, { protocol: "UDP" }],
    byName: { a: { protocol: "TCP" } },
    on: true,
    next: { on: true },
  });
});

t.test("applyDefaults() returns a complete value itself, and does not change its input", async (t) => {
  const full = { ports: [{ protocol: "UDP" }], on: false };
  t.equal(applyDefaults(spec, full), full);
  const frozen = Object.freeze({ ports: Object.freeze([Object.freeze({})]) });
  t.strictSame(applyDefaults(spec, frozen), { ports: [{ protocol: "TCP" }], on: true });
});

t.test("applyDefaults() refuses defaults that multiply", async (t) => {
  const members = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}`, "v"]));
  const item = object("test.Item", { m: optional(1, map(string), { default: members }) });
  const outer = object("test.Outer", { items: optional(1, list(item)) });
  const of = (count: number) => applyDefaults(outer, { items: Array.from({ length: count }, () => ({})) });
  t.equal(of(100).items.length, 100);
  t.throws(() => of(1000), TooManyValuesError);
  const stored = { items: Array.from({ length: 1000 }, () => ({})) };
  t.equal(applyStoredDefaults(outer, stored), stored, "a stored object stays readable");
});
