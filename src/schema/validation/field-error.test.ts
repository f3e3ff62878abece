import t from "tap";
import {
  type BadValue,
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidCombination,
  invalidField,
  invalidMap,
  notFoundField,
  notSupported,
  renderFieldError,
  requiredField,
  tooLong,
  tooMany,
  unquoted,
  unstructured,
} from "./field-error.ts";

t.test("renderFieldError() formats Kubernetes' messages", async (t) => {
  const cases: readonly (readonly [FieldError, string])[] = [
    [requiredField("a"), "Required value"],
    [requiredField("a", "name or generateName is required"), "Required value: name or generateName is required"],
    [invalidField("a", "x", "no good"), 'Invalid value: "x": no good'],
    [invalidField("a", 0, "too small"), "Invalid value: 0: too small"],
    [invalidField("a", null, "gone"), 'Invalid value: "null": gone'],
    [invalidField("a", ["x", "y"], "odd"), 'Invalid value: []string{"x", "y"}: odd'],
    [invalidCombination("a", "not with b"), "Invalid value: not with b"],
    [invalidMap("a", { b: "2", a: "1" }, "odd"), 'Invalid value: map[string]string{"a":"1", "b":"2"}: odd'],
    [invalidMap("a", undefined, "odd"), "Invalid value: map[string]string(nil): odd"],
    [invalidField("a", Buffer.from("\u0001z"), "odd"), "Invalid value: []byte{0x1, 0x7a}: odd"],
    [
      duplicateField("a", unstructured({ b: [1, 1.5, 2e-7, true, null], a: { "": "x" } })),
      'Duplicate value: map[string]interface {}{"a":map[string]interface {}{"":"x"}, "b":[]interface {}{1, 1.5, 2e-07, true, interface {}(nil)}}',
    ],
    [duplicateField("a", unstructured("x")), 'Duplicate value: "x"'],
    [notSupported("a", "x", ["B", "A"]), 'Unsupported value: "x": supported values: "B", "A"'],
    [duplicateField("a", "x"), 'Duplicate value: "x"'],
    [forbiddenField("a", "not now"), "Forbidden: not now"],
    [notFoundField("a", "x"), 'Not found: "x"'],
    [tooLong("a", 63), "Too long: may not be more than 63 bytes"],
    [tooMany("a", 3, 2), "Too many: 3: must have at most 2 items"],
    [tooMany("a", -1, 1), "Too many: must have at most 1 item"],
  ];
  for (const [error, text] of cases) t.equal(renderFieldError(error), text);
});

t.test("renderFieldError() shortens long values", async (t) => {
  const long = "x".repeat(1_000_000);
  const values: readonly BadValue[] = [
    long,
    [long],
    Array(100_000).fill("a"),
    unstructured({ a: long }),
    unquoted(long),
    unstructured({ a: Array(100_000).fill({ b: "a" }) }),
    new Uint8Array(100_000),
  ];
  for (const value of values) t.ok(renderFieldError(invalidField("a", value, "no")).length < 32_000);
  t.equal(
    renderFieldError(invalidField("a", "x".repeat(16_384), "no")).length,
    16_384 + 'Invalid value: "": no'.length,
  );
});
