import t from "tap";
import { boolType, stringType } from "../../cel/values/types.ts";
import { createAdmissionEnvironment, validateExpression } from "./expressions.ts";

const check = (source: string, params = false) =>
  validateExpression(source, createAdmissionEnvironment({ params }), [boolType], "f").map(({ type, detail }) => [
    type,
    detail,
  ]);

t.test("validateExpression() accepts the fields of a request", async (t) => {
  for (const source of [
    "object.spec.replicas > 1 && oldObject == null",
    "request.userInfo.groups.exists(g, g == 'system:masters')",
    "namespaceObject.metadata.labels['tier'] == 'web' && request.kind.group == ''",
    "request.dryRun",
    "authorizer.requestResource.check('patch').allowed() && format.dns1123Label().validate('x').hasValue()",
  ]) {
    t.same(check(source), [], source);
  }
  t.same(check("params.limit > object.spec.replicas", true), []);
});

t.test("validateExpression() reports syntax errors and wrong result types", async (t) => {
  t.same(check("  "), [["FieldValueRequired", ""]]);
  t.match(check("params.limit > 1"), [["FieldValueInvalid", /^compilation failed: ERROR: <input>:1:1: undeclared/]]);
  t.match(check("request.nope"), [["FieldValueInvalid", /undefined field 'nope'/]]);
  t.match(check("1 + 1"), [["FieldValueInvalid", "must evaluate to bool but got int"]]);
  const either = validateExpression("1", createAdmissionEnvironment(), [stringType, { kind: "null" }], "f");
  t.match(either[0]?.detail, "must evaluate to one of [string null");
});
