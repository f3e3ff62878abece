import t from "tap";
import {
  addQuantities,
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

t.test("parseQuantity() returns undefined for invalid text", async (t) => {
  for (const bad of ["", "1 Gi", "1gi", "1mi", "mi", "0x10", "1e", "1e1.5", "--1", "NaN", "9".repeat(300)]) {
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

t.test("addQuantities() and compareQuantities() are exact", async (t) => {
  t.equal(formatQuantity(addQuantities(parsed("100m"), parsed("1900m"))), "2");
  t.equal(compareQuantities(parsed("1Gi"), parsed("1G")), 1);
  t.equal(compareQuantities(parsed("1000m"), parsed("1")), 0);
});
