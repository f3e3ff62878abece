import fc from "fast-check";
import t from "tap";
import { canonicalizeQuantity, explainQuantityError, formatQuantity, parseQuantity, wholeUnits } from "./quantity.ts";

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
    "1E3": "1E3",
    "1e+3": "1e+3",
    "1e0": "1e0",
    "1E": "1E",
    "12e1": "120",
    "0.0001": "100u",
    "0.0000000001": "1n",
    "-1500m": "-1500m",
    "+5": "+5",
    "+1Gi": "+1Gi",
    "+1024Ki": "1Mi",
    "+0": "0",
    "1.5Gi": "1536Mi",
    "1Ki": "1Ki",
    "0.5Ki": "512",
    "0.1Ki": "102400m",
    "9999999999999999999999": "9999999999999999999999",
    "100E": "100E",
    "5.": "5.",
    "007": "007",
    "1.500": "1.500",
    "1.50": "1500m",
    "0.100": "100m",
    "1000E": "1",
    "8Ei": "9223372036854775807",
    Ki: "0",
    "-": "0",
    ".": "0",
    "+e3": "0",
  };
  for (const [text, canonical] of Object.entries(cases)) t.equal(canonicalizeQuantity(text), canonical, text);
});

t.test("canonicalizeQuantity() rounds up to thousandths with milli", async (t) => {
  t.equal(canonicalizeQuantity("1n", true), "1m");
  t.equal(canonicalizeQuantity("-1n", true), "-1m");
  t.equal(canonicalizeQuantity("1500u", true), "2m");
  t.equal(canonicalizeQuantity("0.5", true), "500m");
  t.equal(canonicalizeQuantity("1n"), "1n");
  t.equal(canonicalizeQuantity("+1", true), "+1");
  t.equal(canonicalizeQuantity("+1500u", true), "2m");
});

t.test("parseQuantity() returns undefined for text that is not a quantity", async (t) => {
  const bad = ["", "1 Gi", "1gi", "1mi", "Ei", ".Ei", "1e", "1e+", "1..2", "1.2.3", "0x10", "1KiB", "--1", "1e9999"];
  for (const text of [...bad, "1".repeat(300)]) t.equal(parseQuantity(text), undefined, text);
});

t.test("explainQuantityError() distinguishes the format, the suffix and the number", async (t) => {
  const cases = {
    "1K": "suffix",
    "1e": "suffix",
    "1+5": "suffix",
    Ei: "numeric part",
    "1 Gi": "regular",
    "1e3k": "regular",
  };
  for (const [text, part] of Object.entries(cases)) t.match(explainQuantityError(text), part, text);
  t.match(explainQuantityError(true), "regular expression");
});

t.test("wholeUnits() rounds away from zero and keeps the lowest 64 bits", async (t) => {
  const units = 1_000_000_000n;
  t.equal(wholeUnits(1n), 1n);
  t.equal(wholeUnits(-1n), -1n);
  t.equal(wholeUnits((2n ** 63n - 1n) * units), 2n ** 63n - 1n);
  t.equal(wholeUnits(2n ** 63n * units), -(2n ** 63n));
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
