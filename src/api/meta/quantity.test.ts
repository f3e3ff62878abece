import fc from "fast-check";
import t from "tap";
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  quantityMilliValue,
  quantityValue,
} from "./quantity.ts";

function parsed(text: string) {
  const quantity = parseQuantity(text);
  if (quantity === undefined) throw new Error(`${text} is no quantity`);
  return quantity;
}

t.test("canonicalQuantity() writes what Kubernetes writes", async (t) => {
  const cases: Readonly<Record<string, string>> = {
    "0": "0",
    "0.5": "500m",
    "1000m": "1",
    "1500m": "1500m",
    "1024Ki": "1Mi",
    "1.5Gi": "1536Mi",
    "100Ki": "100Ki",
    "1023": "1023",
    "0.5Ki": "512",
    "1000": "1k",
    "1e3": "1e3",
    "12e6": "12e6",
    "-5": "-5",
    "+5": "5",
    ".5": "500m",
    "5.": "5",
    "1E": "1E",
    "1n": "1n",
    "0.1n": "1n",
    "100000000000000000000": "9223372036854775807",
  };
  for (const [text, canonical] of Object.entries(cases)) t.equal(canonicalQuantity(text), canonical, text);
});

t.test("parseQuantity() refuses what is no quantity", async (t) => {
  for (const bad of ["", ".", "-", "1 Gi", "1gi", "1mi", "Mi", "0x10", "1e", "1e1.5", "--1", "NaN", "9".repeat(200)]) {
    t.equal(parseQuantity(bad), undefined, JSON.stringify(bad));
  }
  t.equal(parseQuantity("1e999999999"), undefined, "an exponent that would take all memory");
});

t.test("quantityValue() and quantityMilliValue() round up", async (t) => {
  t.equal(quantityValue(parsed("1500m")), 2);
  t.equal(quantityMilliValue(parsed("0.1")), 100);
  t.equal(quantityMilliValue(parsed("1u")), 1);
  t.equal(quantityValue(parsed("64Mi")), 67_108_864);
});

t.test("quantities add and compare exactly", async (t) => {
  t.equal(formatQuantity(addQuantities(parsed("100m"), parsed("1900m"))), "2");
  t.equal(compareQuantities(parsed("1Gi"), parsed("1G")), 1);
  t.equal(compareQuantities(parsed("1000m"), parsed("1")), 0);
});

t.test("canonicalQuantity() keeps the value and is stable", async (t) => {
  const suffix = fc.constantFrom("", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi");
  fc.assert(
    fc.property(fc.integer({ min: -1_000_000, max: 1_000_000 }), suffix, (number, unit) => {
      const text = `${number}${unit}`;
      const canonical = canonicalQuantity(text);
      return parsed(canonical).nano === parsed(text).nano && canonicalQuantity(canonical) === canonical;
    }),
  );
  t.pass("holds for random quantities");
});
