import t from "tap";
import type { JsonSchemaProps } from "../../../schema/structural/json-schema-props.ts";
import { renderFieldError } from "../../../schema/validation/field-error.ts";
import { runSteps } from "../../../std/async/steps.ts";
import { definitionOf, widgets } from "../../../testing/api/definition-fixture.ts";
import { customResourceDefinitionKind } from "./kind.ts";
import type { CustomResourceDefinition } from "./schema.ts";
import { validateDefinition } from "./validation.ts";

function errorsOf(next: CustomResourceDefinition, previous?: CustomResourceDefinition): readonly string[] {
  return runSteps(validateDefinition(next, previous)).map((error) => `${error.field}: ${renderFieldError(error)}`);
}

const schema = { openAPIV3Schema: { type: "object" } };

t.test("validateDefinition() reports shared fields at the top level of the spec", async (t) => {
  const bad = { openAPIV3Schema: { type: "object", properties: { a: {} } } };
  const why = "openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields";
  t.same(errorsOf(definitionOf({ schema: bad }, { schema: bad })), [`spec.validation.${why}`]);
  t.same(errorsOf(definitionOf({ schema }, { schema: bad })), [`spec.versions[1].schema.${why}`]);
});

t.test("validateDefinition() prints an empty list of versions as Kubernetes", async (t) => {
  const why = "must have exactly one version marked as storage version";
  const value = "[]apiextensions.CustomResourceDefinitionVersion(nil)";
  t.match(errorsOf(definitionOf()).join("\n"), `spec.versions: Invalid value: ${value}: ${why}`);
});

t.test("validateDefinition() limits the cost of rules, and suggests bounds", async (t) => {
  const item = { type: "string", "x-kubernetes-validations": [{ rule: "self.matches('a+')" }] };
  const list = (more: object): JsonSchemaProps => ({ type: "array", items: item, ...more });
  const [first = ""] = errorsOf(widgets({ l: list({}) }));
  t.match(
    first,
    /^spec\.validation\.openAPIV3Schema\.properties\[l\]\.items\.x-kubernetes-validations\[0\]\.rule: Forbidden/,
  );
  t.match(first, /estimated rule cost exceeds budget by factor of more than 100x/);
  t.match(first, /: give spec\.validation\.openAPIV3Schema\.properties\[l\] a maxItems, give self a maxLength$/);
  t.same(errorsOf(widgets({ l: list({ maxItems: 10, items: { ...item, maxLength: 100 } }) })), []);
  const labelled = (stored: CustomResourceDefinition): readonly string[] =>
    errorsOf({ ...stored, metadata: { ...stored.metadata, labels: { a: "b" } } }, stored);
  const dear = widgets({ l: list({ maxItems: 10_000, items: { ...item, maxLength: 10_000 } }) });
  t.match(errorsOf(dear), [/rule: Forbidden: estimated rule cost exceeds budget by factor of [1-9]\.\dx/]);
  t.same(labelled(dear), [], "the limit of a rule does not apply to a stored schema");
  t.match(labelled(widgets({ l: list({}) })), [/contributed to/, /total for entire OpenAPIv3 schema exceeds budget/]);
});

t.test(
  "validateDefinition() accepts rules that compare the type of a value that is an integer or a string",
  async (t) => {
    const rules = ["type(self) == int ? self < 5 : self.size() < 3", "type(self) != string"];
    const validations = rules.map((rule) => ({ rule }));
    t.same(
      errorsOf(widgets({ p: { "x-kubernetes-int-or-string": true, "x-kubernetes-validations": validations } })),
      [],
    );
    const port = { "x-kubernetes-int-or-string": true } as const;
    const inside = [{ rule: "!has(self.port) || type(self.port) == int" }];
    t.same(errorsOf(widgets({ p: { type: "object", properties: { port }, "x-kubernetes-validations": inside } })), []);
  },
);

t.test("validateDefinition() reports an empty kind of a resource in a default once", async (t) => {
  const resource = { "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true } as const;
  const path = "spec.validation.openAPIV3Schema.properties[p].default.kind";
  const of = (kind: string) =>
    errorsOf(widgets({ p: { type: "object", ...resource, default: { apiVersion: "v1", kind } } }));
  t.same(of(""), [`${path}: Invalid value: "": must not be empty`]);
  t.match(of("a b"), [/: may have mixed case, but should otherwise match: /]);
  t.same(of("Pod"), []);
});

t.test("validateDefinition() reports what is wrong with defaults that have unknown fields too", async (t) => {
  const path = "spec.validation.openAPIV3Schema.properties[p].default";
  const item = { type: "object", properties: { a: { type: "integer" } } } as const;
  t.same(errorsOf(widgets({ p: { type: "array", items: item, default: [{ a: "x", b: 1 }] } })), [
    `${path}: Invalid value: []interface {}{map[string]interface {}{"a":"x", "b":1}}: must not have unknown fields`,
    `${path}.[0].a: Invalid value: "string": [0].a in body must be of type integer: "string"`,
  ]);
  t.same(errorsOf(widgets({ p: { type: "object", additionalProperties: item, default: { k: { a: "x" }, z: 1 } } })), [
    `${path}.k.a: Invalid value: "string": .k.a in body must be of type integer: "string"`,
    `${path}.z: Invalid value: "integer": .z in body must be of type object: "integer"`,
  ]);
});

t.test(
  "validateDefinition() forbids oldSelf where no previous value corresponds: in items of lists without keys",
  async (t) => {
    const rule = { type: "integer", "x-kubernetes-validations": [{ rule: "self == oldSelf" }] };
    const member = { type: "object", properties: { a: rule } };
    const list = (more: object): JsonSchemaProps => ({ type: "array", maxItems: 9, items: member, ...more });
    const correlated: Readonly<Record<string, JsonSchemaProps>> = {
      object: member,
      atomic: { ...member, "x-kubernetes-map-type": "atomic" },
      map: { type: "object", maxProperties: 9, additionalProperties: rule },
      keyed: list({
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        items: { ...member, required: ["a"] },
      }),
    };
    for (const [name, props] of Object.entries(correlated)) t.same(errorsOf(widgets({ p: props })), [], name);
    const path = "spec.validation.openAPIV3Schema.properties[p]";
    t.same(errorsOf(widgets({ p: list({}) })), [
      `${path}.items.properties[a].x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": ` +
        `oldSelf cannot be used on the uncorrelatable portion of the schema within ${path}`,
    ]);
  },
);

t.test("validateDefinition() yields before each schema with rules", async (t) => {
  const COUNT = 100;
  const rule = { type: "string", maxLength: 5, "x-kubernetes-validations": [{ rule: "self != ''" }] };
  const properties = Object.fromEntries(Array.from({ length: COUNT }, (_, i) => [`p${i}`, rule]));
  const steps = validateDefinition(widgets(properties));
  let count = 0;
  for (let step = steps.next(); step.done !== true; step = steps.next()) count++;
  t.ok(count >= COUNT, `${count} steps`);
});

t.test("validateDefinition() limits the time that all patterns take to compile", async (t) => {
  const properties = (count: number, pattern: (index: number) => string) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`p${index}`, { type: "string", pattern: pattern(index) }]),
    );
  const why = "spec.versions: Forbidden: the patterns of all schemas take too long to compile; use fewer of them";
  t.same(errorsOf(widgets(properties(5000, (index) => `^[a-z]{1,50}${index}$`))), [why]);
  t.same(errorsOf(widgets(properties(5000, (index) => `^${"[a-z]".repeat(50)}${index % 100}$`))), []);
  t.same(errorsOf(widgets(properties(300, (index) => `^[a-z]([-a-z0-9]*[a-z0-9])?${index}$`))), []);
});

t.test("validateDefinition() limits the number of versions, which may not grow beyond it", async (t) => {
  const definition = (count: number) => definitionOf(...Array.from({ length: count }, () => ({ schema })));
  const why = "spec.versions: Too many: 501: must have at most 500 items";
  t.same(errorsOf(definition(501)), [why]);
  t.same(errorsOf(definition(501), definition(500)), [why]);
  t.notMatch(errorsOf(definition(501), definition(501)).join(), /Too many/);
  t.notMatch(errorsOf(definition(500)).join(), /Too many/);
});

t.test("validateDefinition() accepts errors in updates that the stored definition has already", async (t) => {
  const set = { type: "array", "x-kubernetes-list-type": "set", items: { type: "object", properties: {} } };
  const stored = widgets({ l: set });
  t.match(errorsOf(stored), [/items\.x-kubernetes-map-type: Invalid value/]);
  t.same(errorsOf(widgets({ l: set, more: { type: "string" } }), stored), []);
  const old: CustomResourceDefinition = definitionOf({});
  t.match(errorsOf(old), [/schemas are required/]);
  t.match(
    errorsOf(
      { ...old, spec: { ...old.spec, preserveUnknownFields: true } },
      { ...old, spec: { ...old.spec, preserveUnknownFields: true } },
    ),
    [],
  );
});

t.test("validateDefinition() rejects changed names of an established definition", async (t) => {
  const stored = definitionOf({ schema });
  const renamed = { ...stored, spec: { ...stored.spec, names: { ...stored.spec.names, kind: "Gadget" } } };
  const withCondition = (status: "True" | "False"): CustomResourceDefinition => ({
    ...stored,
    status: { ...stored.status, conditions: [{ type: "Established", status }] },
  });
  t.same(errorsOf(renamed, withCondition("True")), ['spec.names.kind: Invalid value: "Gadget": field is immutable']);
  t.same(errorsOf(renamed, withCondition("False")), []);
  t.same(errorsOf(renamed, stored), [], "without the condition it is not established");
});

t.test("validateDefinition() requires the approval annotation in Kubernetes' groups", async (t) => {
  const stored = definitionOf({ schema });
  const inGroup = (annotations: Readonly<Record<string, string>>): CustomResourceDefinition => ({
    ...stored,
    metadata: { name: "widgets.x.k8s.io", annotations },
    spec: { ...stored.spec, group: "x.k8s.io" },
  });
  const name = "api-approved.kubernetes.io";
  t.match(errorsOf(inGroup({})), [/^metadata\.annotations\[api-approved\.kubernetes\.io\]: Required value: protected/]);
  t.match(errorsOf(inGroup({ [name]: "yes" })), [/^metadata\.annotations\[.*\]: Invalid value: "yes": protected/]);
  t.same(errorsOf(inGroup({ [name]: "https://example.com/1" })), []);
  t.same(errorsOf(inGroup({ [name]: "unapproved, experimental" })), []);
  t.same(errorsOf(inGroup({}), inGroup({})), []);
});

t.test("customResourceDefinitionKind records storage versions in the status", async (t) => {
  const stored = definitionOf({ schema }, { schema });
  const { strategy } = customResourceDefinitionKind;
  const versions = stored.spec.versions.map((version) => ({ ...version, storage: !version.storage }));
  const next = strategy.prepareForUpdate?.({ ...stored, spec: { ...stored.spec, versions } }, stored, "");
  t.same(next?.status?.storedVersions, ["v1", "v2"]);
  t.equal(next?.metadata?.generation, 1);
  t.same(errorsOf(next ?? stored, stored), []);
});

t.test("validateDefinition() accepts features of a newer CEL version in stored expressions only", async (t) => {
  const rule = { rule: "isSemver(self)" };
  const text = { type: "string", maxLength: 20, "x-kubernetes-validations": [rule] };
  t.match(errorsOf(widgets({ v: text })), [/undeclared reference to 'isSemver'/]);
  t.same(errorsOf(widgets({ v: text, w: text }), widgets({ v: text })), []);
});

t.test("validateDefinition() rejects defaults that violate rules or embedded metadata", async (t) => {
  const rules = [{ rule: "self > 1" }];
  const field = "spec.validation.openAPIV3Schema.properties[a]";
  t.same(errorsOf(widgets({ a: { type: "integer", default: 1, "x-kubernetes-validations": rules } })), [
    `${field}.default: Invalid value: "integer": failed rule: self > 1`,
  ]);
  const resource = {
    type: "object",
    "x-kubernetes-embedded-resource": true,
    "x-kubernetes-preserve-unknown-fields": true,
  };
  t.same(errorsOf(widgets({ a: { ...resource, default: { apiVersion: "v1" } } })), [
    `${field}.default.kind: Required value: must not be empty`,
  ]);
  const metadata = { type: "object", default: { labels: { "a b": "c" } }, properties: { labels: { type: "object" } } };
  t.match(errorsOf(widgets({ a: { ...resource, properties: { metadata } } })), [
    /must result in valid metadata: metadata\.labels/,
  ]);
});
