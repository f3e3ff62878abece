import t from "tap";
import { compileRuleCheck, ValidationReport } from "./check-rules.ts";
import { errorsMax, renderFieldError } from "./field-error.ts";
import type { Rules } from "./rules.ts";

function findings(rules: Rules, value: unknown, nullable = false): readonly string[] {
  const report = new ValidationReport();
  compileRuleCheck(rules, nullable)?.(value, "a", report);
  return report.errors.map((error) => `${error.type} ${error.field}: ${renderFieldError(error)}`);
}

const cases: readonly (readonly [rules: Rules, good: readonly unknown[], bad: unknown, finding: string])[] = [
  [
    { types: ["integer"] },
    [1, 2 ** 40],
    1.5,
    'FieldValueTypeInvalid a: Invalid value: "number": a in body must be of type integer: "number"',
  ],
  [
    { types: ["number"] },
    [1, 1.5],
    "1",
    'FieldValueTypeInvalid a: Invalid value: "string": a in body must be of type number: "string"',
  ],
  [
    { types: ["integer", "string"] },
    [1, "x"],
    true,
    'FieldValueTypeInvalid a: Invalid value: "boolean": a in body must be of type integer,string: "boolean"',
  ],
  [
    { minimum: 1 },
    [1, "not a number"],
    0,
    "FieldValueInvalid a: Invalid value: 0: a in body should be greater than or equal to 1",
  ],
  [
    { minimum: 1, exclusiveMinimum: true },
    [1.1],
    1,
    "FieldValueInvalid a: Invalid value: 1: a in body should be greater than 1",
  ],
  [
    { maximum: 1, exclusiveMaximum: true },
    [0],
    1,
    "FieldValueInvalid a: Invalid value: 1: a in body should be less than 1",
  ],
  [
    { multipleOf: 0.1 },
    [0.3, 7],
    0.25,
    "FieldValueInvalid a: Invalid value: 0.25: a in body should be a multiple of 0.1",
  ],
  [{ maxLength: 2 }, ["ab", "🙂🙂"], "abc", "FieldValueTooLong a: Too long: may not be more than 2 bytes"],
  [
    { minLength: 2 },
    ["ab", 5],
    "🙂",
    'FieldValueInvalid a: Invalid value: "🙂": a in body should be at least 2 chars long',
  ],
  [{ pattern: "^a+$" }, ["aa"], "b", "FieldValueInvalid a: Invalid value: \"b\": a in body should match '^a+$'"],
  [
    { format: "date" },
    ["2024-01-01", 5],
    "x",
    'FieldValueTypeInvalid a: Invalid value: "x": a in body must be of type date: "x"',
  ],
  [
    { enum: ["x", 1, { k: [1] }] },
    ["x", 1, { k: [1] }],
    "y",
    'FieldValueNotSupported a: Unsupported value: "y": supported values: "x", "1", "{\\"k\\":[1]}"',
  ],
  [{ minItems: 1 }, [[1]], [], "FieldValueInvalid a: Invalid value: 0: a in body should have at least 1 items"],
  [{ maxItems: 1 }, [[1]], [1, 2], "FieldValueTooMany a: Too many: 2: must have at most 1 item"],
  [
    { uniqueItems: true },
    [[1, "1"]],
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
    'FieldValueInvalid a: Invalid value: [{"a":1,"b":2},{"b":2,"a":1}]: a in body shouldn\'t contain duplicates',
  ],
  [
    { minProperties: 1 },
    [{ k: 1 }],
    {},
    "FieldValueInvalid a: Invalid value: 0: a in body should have at least 1 properties",
  ],
  [{ maxProperties: 1 }, [{ k: 1 }], { k: 1, l: 1 }, "FieldValueTooMany a: Too many: 2: must have at most 1 item"],
  [{ required: ["k"] }, [{ k: null }, 5], { constructor: 1 }, "FieldValueRequired a.k: Required value"],
  [{ closed: true }, [{}], { k: 1 }, 'FieldValueInvalid a: Invalid value: "k": a.k in body is a forbidden property'],
  [
    { not: { required: ["k"] } },
    [{}],
    { k: 1 },
    'FieldValueInvalid <nil>: Invalid value: "": "a" must not validate the schema (not)',
  ],
  [
    { properties: { k: { maximum: 1 } } },
    [{ k: 1 }, {}],
    { k: 2 },
    "FieldValueInvalid a.k: Invalid value: 2: a.k in body should be less than or equal to 1",
  ],
  [
    { items: { maximum: 1 } },
    [[1]],
    [1, 2],
    "FieldValueInvalid a[1]: Invalid value: 2: a[1] in body should be less than or equal to 1",
  ],
];

for (const [rules, good, bad, finding] of cases) {
  t.test(`compileRuleCheck() checks ${JSON.stringify(rules)}`, async (t) => {
    for (const value of good) t.same(findings(rules, value), [], JSON.stringify(value));
    t.same(findings(rules, bad), [finding]);
  });
}

t.test("compileRuleCheck() reports the alternative with the most passed checks", async (t) => {
  const anyOf = [{ required: ["x"] }, { required: ["k"], properties: { k: { maximum: 1 } } }];
  t.same(findings({ anyOf }, { k: 1 }), []);
  t.same(findings({ anyOf }, {}).slice(0, 1), [
    'FieldValueInvalid <nil>: Invalid value: "": "a" must validate at least one schema (anyOf)',
  ]);
  const oneOf = [{ required: ["x"] }, { required: ["y"] }];
  t.same(findings({ oneOf }, { x: 1, y: 1 }), [
    'FieldValueInvalid <nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). Found 2 valid alternatives',
  ]);
  t.same(findings({ oneOf }, {}), [
    'FieldValueInvalid <nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). Found none valid',
    "FieldValueRequired a.x: Required value",
  ]);
  t.same(
    findings({ allOf: [{ minimum: 3 }, { maximum: 1 }] }, 2).at(-1),
    'FieldValueInvalid <nil>: Invalid value: "": "a" must validate all the schemas (allOf). None validated',
  );
});

t.test("compileRuleCheck() accepts null when nullable", async (t) => {
  t.same(findings({ types: ["string"], minLength: 3 }, null, true), []);
  t.match(findings({ types: ["string"] }, null), [/must be of type string: "null"$/]);
  t.match(findings({ types: ["string"], enum: ["x"] }, null, true), [/^FieldValueNotSupported/]);
});

t.test("compileRuleCheck() stops at the limit of errors", async (t) => {
  t.equal(findings({ items: { maximum: 0 } }, new Array(errorsMax + 5).fill(1)).length, errorsMax);
});
