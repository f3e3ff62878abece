import t from "tap";
import { runSteps } from "../../std/async/steps.ts";
import { validateParamKind } from "./policy-validation.ts";
import { validateMatchResources } from "./rules-validation.ts";
import { validatePolicy, validatePolicyStatus } from "./validating-admission-policy/validation.ts";
import type { ValidatingWebhook } from "./webhook-configuration/schema.ts";
import { validateWebhooks } from "./webhook-configuration/validation.ts";

t.test("the version of a parameter's kind has Kubernetes' errors", async (t) => {
  const format = /^a DNS-1035 label must consist of/;
  const cases: readonly (readonly [apiVersion: string, value: string, detail: string | RegExp])[] = [
    ["a/b/c", "a/b/c", "unexpected GroupVersion string: a/b/c"],
    ["rules.example.com/", "rules.example.com/", "version must be specified"],
    ["/", "/", "version must be specified"],
    ["Rules/v1", "Rules", /^a lowercase RFC 1123 subdomain must consist of/],
    ["rules.example.com/1", "1", format],
    ["1", "1", format],
  ];
  for (const [apiVersion, badValue, detail] of cases) {
    t.match(validateParamKind({ apiVersion, kind: "Rule" }, "p"), [{ field: "p.apiVersion", badValue, detail }]);
  }
  t.same(validateParamKind({ apiVersion: "rules.example.com/v1", kind: "Rule" }, "p"), []);
});

t.test("the match policy of a policy is validated before its selectors", async (t) => {
  t.same(
    validateMatchResources({}, "m").map(({ field }) => field),
    ["m.matchPolicy", "m.namespaceSelector", "m.objectSelector"],
  );
});

t.test("expressions of validations show the text as sent", async (t) => {
  const validations = [{ expression: " 1 ", messageExpression: " 2 " }];
  const errors = runSteps(validatePolicy({ metadata: { name: "p" }, spec: { validations } }));
  const found = errors.filter(({ field }) => field.startsWith("spec.validations"));
  t.match(found, [{ badValue: " 1 " }, { badValue: " 2 " }]);
});

const webhook: ValidatingWebhook = {
  name: "a.example.com",
  clientConfig: { url: "https://x" },
  sideEffects: "None",
  admissionReviewVersions: ["v1"],
};

t.test("webhooks keep what stored ones have, and report missing names once", async (t) => {
  const errorsOf = (next: readonly ValidatingWebhook[], previous?: readonly ValidatingWebhook[]) =>
    runSteps(validateWebhooks(next, previous)).map(({ field, detail }) => `${field}: ${detail}`);
  const { sideEffects: _, ...unknown } = webhook;
  t.same(errorsOf([unknown as ValidatingWebhook]), ["webhooks[0].sideEffects: must specify one of None, NoneOnDryRun"]);
  t.same(errorsOf([unknown as ValidatingWebhook], [{ ...webhook, sideEffects: "Some" }]), [
    "webhooks[0].sideEffects: must specify one of None, NoneOnDryRun, Some, Unknown",
  ]);
  const unnamed = { ...webhook, name: "" };
  t.same(errorsOf([unnamed, unnamed]), ["webhooks[0].name: ", "webhooks[1].name: "]);
});

t.test("conditions after the 64th are validated too", async (t) => {
  const matchConditions = Array.from({ length: 65 }, (_, i) => ({
    name: `c${i}`,
    expression: i === 64 ? "1" : "true",
  }));
  const errors = runSteps(validatePolicy({ metadata: { name: "p" }, spec: { matchConditions } }));
  t.match(
    errors.filter(({ field }) => field.startsWith("spec.matchConditions")).map(({ field }) => field),
    ["spec.matchConditions", "spec.matchConditions[64].expression"],
  );
});

t.test("a type checking warning refers to a field by a JSONPath", async (t) => {
  const errors = (fieldRef: string) =>
    validatePolicyStatus({ status: { typeChecking: { expressionWarnings: [{ fieldRef, warning: "w" }] } } });
  t.same(errors("spec.validations[0].expression"), []);
  t.match(errors(" "), [{ type: "FieldValueRequired" }]);
  t.match(errors("spec.validations[0"), [{ detail: "invalid JSONPath: unterminated array" }]);
});
