import t from "tap";
import { runSteps } from "../../../std/async/steps.ts";
import type { MutatingAdmissionPolicyBinding } from "./schema.ts";
import { mutatingAdmissionPolicyBindingStrategy, mutatingAdmissionPolicyStrategy } from "./strategy.ts";
import { validateMutatingPolicy, validateMutatingPolicyBinding } from "./validation.ts";

const rule = { operations: ["CREATE" as const], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] };
const apply = (expression: string) => {
  return { patchType: "ApplyConfiguration" as const, applyConfiguration: { expression } };
};
const patch = (expression: string) => ({ patchType: "JSONPatch" as const, jsonPatch: { expression } });

function errorsOf(spec: object, operations = rule.operations): readonly string[] {
  const matchConstraints = { resourceRules: [{ ...rule, operations }] };
  const policy = {
    metadata: { name: "p" },
    spec: { matchConstraints, reinvocationPolicy: "Never" as const, ...spec },
  };
  const defaulted = mutatingAdmissionPolicyStrategy.setDefaults?.(policy) ?? policy;
  return runSteps(validateMutatingPolicy(defaulted)).map(({ field, type, detail }) => `${field} ${type} ${detail}`);
}

t.test("expressions of mutations have the type of the patch", async (t) => {
  for (const mutation of [
    apply("Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name})}}"),
    apply("has(object.spec) ? Object{metadata: Object.metadata{labels: {'a': variables.v}}} : Object{}"),
    patch("[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: variables.v}]"),
    patch("object.spec.containers.map(c, JSONPatch{op: 'test', path: c.name})"),
  ]) {
    t.same(errorsOf({ variables: [{ name: "v", expression: "'x'" }], mutations: [mutation] }), []);
  }
  const table = [
    [apply("'x'"), /applyConfiguration\.expression FieldValueInvalid must evaluate to Object but got string$/],
    [apply("Object.spec{}"), /must evaluate to Object but got Object\.spec$/],
    [patch("[]"), /jsonPatch\.expression FieldValueInvalid must evaluate to list\(JSONPatch\) but got list\(dyn\)$/],
    [patch("[JSONPatch{path: 1}]"), /expected type of field 'path' is 'string' but provided type is 'int'/],
    [patch("[JSONPatch{where: 'x'}]"), /expected type of field 'where' is '' but provided type is 'string'/],
    [apply("object{}"), /'dyn' is not a type/],
    [apply(" "), /FieldValueRequired/],
    [{ patchType: "ApplyConfiguration" }, /must be specified when patchType is ApplyConfiguration$/],
    [{ ...apply("Object{}"), ...patch("x") }, /undeclared reference to 'x'/],
  ] as const;
  for (const [mutation, error] of table) t.match(errorsOf({ mutations: [mutation] })[0], error);
});

t.test("policies for deleted objects, without mutations and with unknown choices are rejected", async (t) => {
  const mutations = [apply("Object{}")];
  t.match(errorsOf({ mutations }, ["DELETE" as never]), [/resourceRules\.operations FieldValueNotSupported/]);
  t.match(errorsOf({ mutations }, ["OTHER" as never])[1], /resourceRules\.operations FieldValueNotSupported/);
  t.match(errorsOf({}), [/spec\.mutations FieldValueRequired mutations must contain at least one item/]);
  t.match(errorsOf({ mutations, reinvocationPolicy: "Often" }), [/"IfNeeded", "Never"$/]);
  t.match(errorsOf({ mutations: [{ patchType: "Merge" }] }), [/"ApplyConfiguration", "JSONPatch"$/]);
});

t.test("bindings deny requests without parameters by default", async (t) => {
  const binding: MutatingAdmissionPolicyBinding = { spec: { policyName: "p", paramRef: { name: "x" } } };
  const defaulted = mutatingAdmissionPolicyBindingStrategy.setDefaults?.(binding) ?? binding;
  t.equal(defaulted.spec?.paramRef?.parameterNotFoundAction, "Deny");
  t.same(validateMutatingPolicyBinding(defaulted), []);
  t.match(validateMutatingPolicyBinding({ spec: { policyName: "A b" } }), [{ field: "spec.policyName" }]);
  const matchResources = { resourceRules: [{ ...rule, operations: ["DELETE" as const] }] };
  t.match(validateMutatingPolicyBinding({ spec: { policyName: "p", matchResources } }).at(-1), {
    field: "spec.matchResources.resourceRules.operations",
  });
});
