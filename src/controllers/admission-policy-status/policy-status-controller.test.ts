import t from "tap";
import { validatingAdmissionPolicyKind } from "../../api/admissionregistration/validating-admission-policy/kind.ts";
import type { ValidatingAdmissionPolicySpec } from "../../api/admissionregistration/validating-admission-policy/schema.ts";
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { startController } from "../../testing/controllers/start-controller.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { passTime } from "../../testing/std/pass-time.ts";
import { runPolicyStatusController } from "./policy-status-controller.ts";

const rule = { operations: ["CREATE" as const], apiVersions: ["v1"] };
const onPods = { resourceRules: [{ ...rule, apiGroups: [""], resources: ["pods", "pods/status"] }] };
const onWidgets = { resourceRules: [{ ...rule, apiGroups: ["example.com"], resources: ["widgets"] }] };
const widget = {
  type: "object",
  properties: { spec: { type: "object", properties: { size: { type: "integer" }, name: { type: "string" } } } },
};

async function warningsOf(
  t: Parameters<typeof startInMemoryCluster>[0],
  spec: Partial<ValidatingAdmissionPolicySpec>,
): Promise<readonly string[]> {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: [] }, clock);
  startController(t, runPolicyStatusController, client, clock);
  await client.create(customResourceDefinitionKind, {
    metadata: { name: "widgets.example.com" },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: widget } }],
    },
  });
  await passTime(clock, 1000);
  await client.create(validatingAdmissionPolicyKind, {
    metadata: { name: "p" },
    spec: { matchConstraints: onPods, ...spec },
  });
  await passTime(clock, 1000);
  const { status } = await client.get(validatingAdmissionPolicyKind, { name: "p" });
  if (status?.observedGeneration !== 1) throw new Error("The policy was not checked");
  return (status.typeChecking?.expressionWarnings ?? []).map(({ fieldRef, warning }) => `${fieldRef}: ${warning}`);
}

t.test(
  "expressions that fit have no warning; functions, quantities and other versions' fields are known",
  async (t) => {
    const expressions = [
      "object.metadata.name.startsWith('a') && !has(object.spec.hostNetwork)",
      "object.spec.containers.all(c, c.resources.requests.all(r, quantity(c.resources.requests[r]).isInteger()))",
      "oldObject == null || object.metadata.labels['a'] == oldObject.metadata.labels['a']",
      "request.userInfo.username == namespaceObject.metadata.name",
    ];
    t.strictSame(await warningsOf(t, { validations: expressions.map((expression) => ({ expression })) }), []);
  },
);

t.test("message expressions and variables are checked", async (t) => {
  const warnings = await warningsOf(t, {
    variables: [
      { name: "names", expression: "object.spec.containers.map(c, c.name)" },
      { name: "wrong", expression: "object.nope" },
    ],
    validations: [
      {
        expression: "variables.names.size() > 0 && variables.wrong == 1",
        messageExpression: "string(object.spec.nodeNamed)",
      },
      { expression: "variables.names[0] > 1" },
    ],
  });
  t.match(warnings, [
    /^spec\.validations\[0\]\.messageExpression: \/v1, Kind=Pod: ERROR: <input>:1:19: undefined field 'nodeNamed'/,
    /^spec\.validations\[1\]\.expression: \/v1, Kind=Pod: .*found no matching overload for '_>_' applied to '\(string, int\)'/,
  ]);
});

t.test("custom resources and parameters have the types of their definition", async (t) => {
  const warnings = await warningsOf(t, {
    matchConstraints: onWidgets,
    paramKind: { apiVersion: "example.com/v1", kind: "Widget" },
    validations: [
      { expression: "object.spec.size < params.spec.size" },
      { expression: "object.spec.size < params.spec.name" },
    ],
  });
  t.equal(warnings.length, 1);
  t.match(warnings[0], /^spec\.validations\[1\]\.expression: example\.com\/v1, Kind=Widget: .*'\(int, string\)'/);
});

t.test("resources that are not served, and wildcards, are not checked", async (t) => {
  for (const [apiGroups, resources] of [
    [["example.com"], ["gadgets"]],
    [["*"], ["pods"]],
    [[""], ["*"]],
  ] as const) {
    const matchConstraints = { resourceRules: [{ ...rule, apiGroups, resources }] };
    t.strictSame(await warningsOf(t, { matchConstraints, validations: [{ expression: "object.nope == 1" }] }), []);
  }
});
