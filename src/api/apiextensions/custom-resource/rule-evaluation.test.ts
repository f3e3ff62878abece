import t from "tap";
import { convertPart, convertResource } from "../../../schema/structural/convert.ts";
import type { JsonSchemaProps } from "../../../schema/structural/json-schema-props.ts";
import { renderFieldError } from "../../../schema/validation/field-error.ts";
import type { ValidationRule } from "../../../schema/validation/rules.ts";
import { runSteps } from "../../../std/async/steps.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { type EvaluateOptions, evaluateRules, type RuleObserver } from "./rule-evaluation.ts";

const options = { name: "example.com/v1.Widget", metadata: objectMeta };

function findings(props: JsonSchemaProps, value: unknown, more?: EvaluateOptions): readonly string[] {
  const { errors } = runSteps(evaluateRules(convertPart(props, options), value, { field: "s", ...more }));
  return errors.map((error) => `${error.type} ${error.field}: ${renderFieldError(error)}`);
}

/** The schema of an object with two integers and one rule. */
function schemaWithRule(rule: ValidationRule): JsonSchemaProps {
  const number = { type: "integer" };
  return { type: "object", properties: { a: number, b: number }, "x-kubernetes-validations": [rule] };
}

const cases: readonly (readonly [what: string, rule: ValidationRule, value: object, findings: readonly string[]])[] = [
  ["nothing of what holds", { rule: "self.a < self.b" }, { a: 1, b: 2 }, []],
  [
    "the rule that fails",
    { rule: " self.a < self.b " },
    { a: 2, b: 2 },
    ['FieldValueInvalid s: Invalid value: "object": failed rule: self.a < self.b'],
  ],
  [
    "its message",
    { rule: "self.a < self.b", message: "no" },
    { a: 2, b: 2 },
    ['FieldValueInvalid s: Invalid value: "object": no'],
  ],
  [
    "a messageExpression, at the rule's fieldPath",
    {
      rule: "self.a < self.b",
      messageExpression: "'not ' + string(self.a)",
      fieldPath: ".a",
      reason: "FieldValueForbidden",
    },
    { a: 2, b: 2 },
    ["FieldValueForbidden s.a: Forbidden: not 2"],
  ],
  [
    "its plain message where the expression gives none",
    { rule: "false", message: "m", messageExpression: "' '" },
    { a: 1 },
    ['FieldValueInvalid s: Invalid value: "object": m'],
  ],
  [
    "what went wrong with it",
    { rule: "self.b == 1" },
    { a: 1 },
    ['FieldValueInvalid s: Invalid value: "object": no such key: b evaluating rule: self.b == 1'],
  ],
  ["nothing of what was before, when nothing was", { rule: "self.a == oldSelf.a" }, { a: 1 }, []],
  [
    "rules that can do without",
    { rule: "oldSelf.hasValue() || self.a == 1", optionalOldSelf: true },
    { a: 2 },
    ['FieldValueInvalid s: Invalid value: "object": failed rule: oldSelf.hasValue() || self.a == 1'],
  ],
];

for (const [what, rule, value, expected] of cases) {
  t.test(`evaluateRules() reports ${what}`, async (t) => t.same(findings(schemaWithRule(rule), value), expected));
}

t.test(
  "evaluateRules() correlates items of keyed lists and members, also of atomic objects, with the previous object",
  async (t) => {
    const entry = {
      type: "object",
      properties: { k: { type: "string" }, n: { type: "integer" } },
      "x-kubernetes-validations": [{ rule: "self.n >= oldSelf.n" }],
    };
    const props = {
      type: "object",
      properties: {
        l: { type: "array", items: entry, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"] },
        m: { type: "object", additionalProperties: entry },
        whole: { type: "object", properties: { e: entry }, "x-kubernetes-map-type": "atomic" },
        atomic: { type: "array", items: entry },
      },
    };
    const old = { l: [{ k: "x", n: 5 }], m: { y: { n: 5 } }, whole: { e: { n: 5 } }, atomic: [{ n: 5 }] };
    const value = {
      l: [
        { k: "w", n: 1 },
        { k: "x", n: 4 },
      ],
      m: { y: { n: 4 }, z: { n: 1 } },
      whole: { e: { n: 4 } },
      atomic: [{ n: 4 }],
    };
    t.match(findings(props, value, { old }), [
      /^FieldValueInvalid s\.l\[1\]:/,
      /^FieldValueInvalid s\.m\[y\]:/,
      /^FieldValueInvalid s\.whole\.e:/,
    ]);
  },
);

t.test("evaluateRules() stops when the rules of one object exceed the cost budget", async (t) => {
  const list = {
    type: "array",
    items: { type: "integer" },
    "x-kubernetes-validations": [{ rule: "self.all(x, self.all(y, x + y >= 0))" }],
  };
  const value = Array.from({ length: 2000 }, (_, i) => i);
  t.match(findings(list, value), [/no further validation rules will be run due to call cost exceeds limit/]);
  const cheap = {
    ...list,
    "x-kubernetes-validations": new Array(100).fill({ rule: "self.all(x, self.exists(y, y == x + 300))" }),
  };
  t.match(findings(cheap, value.slice(0, 400)).at(-1), /running out of cost budget|call cost exceeds limit/);
});

t.test("evaluateRules() exposes apiVersion, kind and metadata of a whole resource", async (t) => {
  const schema = convertResource(
    {
      type: "object",
      "x-kubernetes-validations": [{ rule: "self.metadata.name.startsWith('a') && self.kind == 'Widget'" }],
    },
    options,
  );
  const object = { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "a" } };
  t.same(runSteps(evaluateRules(schema, object, { resourceRoot: true })).errors, []);
  const other = { ...object, metadata: { name: "b" } };
  t.match(runSteps(evaluateRules(schema, other, { resourceRoot: true })).errors, [{ field: "<nil>" }]);
});

t.test("evaluateRules() reports the compilation of each schema once, and each evaluation", async (t) => {
  const schema = convertPart(schemaWithRule({ rule: "self.a < self.b" }), options);
  const measured: string[] = [];
  const observer: RuleObserver = {
    measureCompilation: (compile) => {
      measured.push("compilation");
      return compile();
    },
    measureEvaluation: (evaluation) => {
      measured.push("evaluation");
      return evaluation;
    },
  };
  for (let count = 0; count < 2; count++) runSteps(evaluateRules(schema, { a: 1, b: 2 }, { observer }));
  t.same(measured, ["evaluation", "compilation", "evaluation"]);
});

t.test("evaluateRules() yields between rules that cost much", async (t) => {
  const rule = { rule: "self.all(x, self.all(y, x + y >= 0))" };
  const props = {
    type: "array",
    maxItems: 100,
    items: { type: "integer" },
    "x-kubernetes-validations": Array(10).fill(rule),
  };
  const value = Array.from({ length: 100 }, (_, index) => index);
  const steps = evaluateRules(convertPart(props, options), value);
  let count = 0;
  while (steps.next().done !== true) count++;
  t.ok(count >= 5, `${count} steps`);
  const few = evaluateRules(convertPart(props, options), [1]);
  t.equal(few.next().done, true, "one step for little work");
});
