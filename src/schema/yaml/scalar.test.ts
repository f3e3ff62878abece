import t from "tap";
import { resolvePlain, resolveTagged } from "./scalar.ts";

t.test("resolvePlain() resolves booleans and numbers as YAML 1.1", async (t) => {
  const cases: Readonly<Record<string, unknown>> = {
    "": null,
    "~": null,
    null: null,
    yes: true,
    Off: false,
    y: true,
    "12": 12,
    "-7": -7,
    "1_000": 1000,
    "0644": 420,
    "0o17": 15,
    "0x1F": 31,
    "0b101": 5,
    "1.5": 1.5,
    "1e3": 1000,
    ".5": 0.5,
    "22:22": "22:22",
    "2021-01-01": "2021-01-01",
    "1.2.3": "1.2.3",
    "0x": "0x",
    "089": 89,
    "-": "-",
    "500m": "500m",
    ".inf": Number.POSITIVE_INFINITY,
    "-.INF": Number.NEGATIVE_INFINITY,
    ".NaN": Number.NaN,
    "1e999": "1e999",
    nUll: "nUll",
  };
  for (const [text, value] of Object.entries(cases)) t.strictSame(resolvePlain(text), value, JSON.stringify(text));
});

t.test("resolveTagged() requires text that matches the tag", async (t) => {
  t.equal(resolveTagged("!!str", "12"), "12");
  t.equal(resolveTagged("!!int", "12"), 12);
  t.equal(resolveTagged("!!int", "x"), undefined);
  t.equal(resolveTagged("!!bool", "yes"), true);
  t.equal(resolveTagged("!!null", ""), null);
  t.equal(resolveTagged("!!js/function", "x"), "x");
  t.equal(resolveTagged("!local", "5"), "5");
});
