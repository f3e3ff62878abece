import fc from "fast-check";
import t from "tap";
import { canonicalizeQuantity, formatQuantity, parseQuantity } from "./quantity.ts";

t.test("canonicalizeQuantity() formats as Kubernetes does", async (t) => {
  const cases: Readonly<Record<string, string>> = {
    "0": "0",
    "0Mi": "0",
    "1000m": "1",
    "1500m": "1500m",
    "0.5": "500m",
    ".5Gi": "512Mi",
    "1024Mi": "1Gi",
    "1000Mi": "1000Mi",
    "1023": "1023",
    "100": "100",
    "1000": "1k",
    "1e3": "1e3",
    "1E3": "1e3",
    "1E": "1E",
    "12e1": "120",
    "0.0001": "100u",
    "0.0000000001": "1n",
    "-1500m": "-1500m",
    "+5": "5",
    "1.5Gi": "1536Mi",
    "1Ki": "1Ki",
    "0.5Ki": "512",
    "0.1Ki": "102400m",
    "9999999999999999999999": "9999999999999999999999",
    "100E": "100E",
    "5.": "5",
    "007": "7",
  };
  for (const [text, canonical] of Object.entries(cases)) t.equal(canonicalizeQuantity(text), canonical, text);
});

t.test("canonicalizeQuantity() rounds up to thousandths with milli", async (t) => {
  t.equal(canonicalizeQuantity("1n", true), "1m");
  t.equal(canonicalizeQuantity("-1n", true), "-1m");
  t.equal(canonicalizeQuantity("1500u", true), "2m");
  t.equal(canonicalizeQuantity("0.5", true), "500m");
  t.equal(canonicalizeQuantity("1n"), "1n");
});

t.test("parseQuantity() returns undefined for text that is not a quantity", async (t) => {
  const bad = [
    "",
    ".",
    "-",
    "1 Gi",
    "1gi",
    "1mi",
    "Gi",
    "1e",
    "1e+",
    "e3",
    "1..2",
    "1.2.3",
    "0x10",
    "1KiB",
    "--1",
    "1e9999",
  ];
  for (const text of [...bad, "1".repeat(300)]) t.equal(parseQuantity(text), undefined, text);
});

t.test("parseQuantity() inverts formatQuantity()", async (t) => {
  const amounts = fc.record({
    nanos: fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }),
    format: fc.constantFrom("DecimalSI", "BinarySI", "DecimalExponent"),
  });
  fc.assert(
    fc.property(amounts, (quantity) => {
      const text = formatQuantity(quantity);
      return parseQuantity(text)?.nanos === quantity.nanos && canonicalizeQuantity(text) === text;
    }),
  );
  t.pass();
});
