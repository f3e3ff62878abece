/** OpenAPI of custom resources, kubectl's validation by it, and the field validation of the server. */
import assert from "node:assert/strict";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import type { Behaviour, Behaviours, TestNamespace } from "../harness/behaviour.ts";
import { type Definition, type DefinitionOptions, define, groupOf, preserving } from "./definitions.ts";

const schema = {
  description: "Foo CRD for Testing",
  type: "object",
  required: ["spec"],
  properties: {
    spec: {
      type: "object",
      description: "Specification of Foo",
      properties: {
        bars: {
          description: "List of Bars and their specs.",
          type: "array",
          items: {
            type: "object",
            required: ["name"],
            properties: {
              name: { description: "Name of Bar.", type: "string" },
              age: { description: "Age of Bar.", type: "string" },
              bazs: { description: "List of Bazs.", type: "array", items: { type: "string" } },
            },
          },
        },
      },
    },
  },
};

/** The definitions of OpenAPI v2 whose kind is of the group and version. */
async function findDefinitions(at: TestNamespace, group: string, version: string): Promise<readonly string[]> {
  const { definitions } = await at.api.get("/openapi/v2");
  const kinds = Object.values(definitions as Record<string, Json>).flatMap(
    (definition) => definition["x-kubernetes-group-version-kind"] ?? [],
  );
  return kinds.filter((each) => each.group === group && each.version === version).map(({ kind }) => kind);
}

async function untilPublished(at: TestNamespace, version: string, kinds: readonly string[], group = groupOf(at)) {
  await until(`${kinds} in the OpenAPI of ${group}/${version}`, async () => {
    const found = await findDefinitions(at, group, version);
    return kinds.length === 0 ? found.length === 0 : kinds.every((kind) => found.includes(kind));
  });
}

async function stopServing(at: TestNamespace): Promise<void> {
  await using definition = await define(at, { versions: { v5: { schema }, v6alpha1: { schema } } });
  for (const version of ["v5", "v6alpha1"]) await untilPublished(at, version, ["Widget"]);
  await at.api.patch(definition.path, [{ op: "replace", path: "/spec/versions/1/served", value: false }], "json");
  await untilPublished(at, "v6alpha1", []);
  await untilPublished(at, "v5", ["Widget"]);
}

async function renameVersion(at: TestNamespace): Promise<void> {
  await using definition = await define(at, { versions: { v2: { schema }, v3: { schema } } });
  for (const version of ["v2", "v3"]) await untilPublished(at, version, ["Widget"]);
  await at.api.patch(definition.path, [{ op: "replace", path: "/spec/versions/1/name", value: "v4" }], "json");
  await untilPublished(at, "v4", ["Widget"]);
  await untilPublished(at, "v3", []);
  await untilPublished(at, "v2", ["Widget"]);
}

async function publishKinds(at: TestNamespace): Promise<void> {
  await using _ = await define(at, { plural: "foos", kind: "Foo", versions: { v6: { schema } } });
  await using __ = await define(at, { plural: "bars", kind: "Bar", versions: { v6: { schema } } });
  await untilPublished(at, "v6", ["Foo", "Bar"]);
}

async function publishVersions(at: TestNamespace): Promise<void> {
  await using _ = await define(at, { versions: { v2: { schema }, v3: { schema } } });
  for (const version of ["v2", "v3"]) await untilPublished(at, version, ["Widget"]);
}

async function publishGroups(at: TestNamespace): Promise<void> {
  const other = `other.${groupOf(at)}`;
  await using _ = await define(at, { versions: { v1: { schema } } });
  await using __ = await define(at, { group: other, versions: { v3: { schema } } });
  await untilPublished(at, "v1", ["Widget"]);
  await untilPublished(at, "v3", ["Widget"], other);
}

async function withDefinition(
  at: TestNamespace,
  options: DefinitionOptions,
  use: (definition: Definition) => Promise<void>,
): Promise<void> {
  await using definition = await define(at, options);
  await untilPublished(at, "v1", ["Widget"]);
  await use(definition);
}

/** Creates and applies the object with kubectl, and deletes it. */
async function expectAccepted(at: TestNamespace, object: object): Promise<void> {
  await at.run("create -f -", JSON.stringify(object));
  await at.run("delete -f -", JSON.stringify(object));
  await at.run("apply -f -", JSON.stringify(object));
  await at.run("delete -f -", JSON.stringify(object));
}

async function expectRejected(at: TestNamespace, object: object, pattern: RegExp): Promise<void> {
  for (const verb of ["create", "apply"]) {
    const { code, stderr } = await at.kubectl([verb, "-f", "-"], JSON.stringify(object));
    assert.notEqual(code, 0, `kubectl ${verb} of ${JSON.stringify(object)}`);
    assert.match(stderr, pattern);
  }
}

/** `kubectl explain` takes the version apart from the resource. */
const explainField = (at: TestNamespace, field = ""): Promise<string> =>
  at.run(`explain widgets${field} --api-version=${groupOf(at)}/v1`);

async function testClientValidation(at: TestNamespace): Promise<void> {
  await withDefinition(at, { versions: { v1: { schema } } }, async (definition) => {
    const bars = [{ name: "test-bar", age: "10", bazs: ["one"] }];
    await expectAccepted(at, definition.object("good", { spec: { bars } }));
    await expectRejected(at, definition.object("bad", { spec: { foo: true } }), /unknown field "spec\.foo"/);
    await expectRejected(
      at,
      definition.object("bad", { spec: { bars: [{ age: "10" }] } }),
      /spec\.bars\[0\]\.name: Required/,
    );
    await expectRejected(at, definition.object("bad"), /spec: Required value/);
    const top = await explainField(at);
    assert.match(top, /DESCRIPTION:\s+Foo CRD for Testing/);
    assert.match(top, /^\s+apiVersion\s+<string>/m);
    assert.match(top, /^\s+metadata\s+<ObjectMeta>/m);
    assert.match(top, /spec\s.*\n\s+Specification of Foo/);
    assert.match(await explainField(at, ".spec"), /DESCRIPTION:\s+Specification of Foo[\s\S]*bars\s+<\[\]Object>/);
    const nested = await explainField(at, ".spec.bars");
    assert.match(nested, /List of Bars and their specs\./);
    assert.match(nested, /bazs\s+<\[\]string>\s+List of Bazs\./);
    assert.match(nested, /name\s+<string> -required-\s+Name of Bar\./);
    const { code, stderr } = await at.kubectl(["explain", "widgets.spec.bars2", `--api-version=${groupOf(at)}/v1`]);
    assert.notEqual(code, 0);
    assert.match(stderr, /field "bars2" does not exist/);
  });
}

/** kubectl accepts unknown fields. */
function testPreservedFields(schema: object, object: object, explained: RegExp, field = ""): Behaviour {
  return (at) =>
    withDefinition(at, { versions: { v1: { schema } } }, async (definition) => {
      await expectAccepted(at, definition.object("free", object));
      assert.match(await explainField(at, field), explained);
    });
}

const unknown = { a: { b: [{ c: "d" }] } };

/** Sends text, since objects of JavaScript have no duplicate fields. */
async function expectStrictError(at: TestNamespace, path: string, body: string, pattern: RegExp): Promise<void> {
  const response = await at.api.send(`POST ${path}?fieldValidation=Strict`, { body });
  assert.equal(response.status, 400, response.text);
  assert.match(response.json.message, pattern);
}

async function detectDuplicates(at: TestNamespace): Promise<void> {
  const properties = { spec: preserving };
  await using definition = await define(at, { versions: { v1: { schema: { ...preserving, properties } } } });
  const text = JSON.stringify(definition.object("twice", { spec: { foo: "a", knownField1: "b" } }));
  const twice = text.replace('"foo":"a"', '"foo":"a","foo":"b"');
  await expectStrictError(at, definition.objects, twice, /strict decoding error: duplicate field "spec\.foo"/);
  assert.equal((await at.api.send(`POST ${definition.objects}?fieldValidation=Strict`, { body: text })).status, 201);
}

async function detectMetadata(at: TestNamespace): Promise<void> {
  const embedded = { ...preserving, "x-kubernetes-embedded-resource": true };
  const properties = { spec: { type: "object", properties: { template: embedded } } };
  await using definition = await define(at, { versions: { v1: { schema: { type: "object", properties } } } });
  const template = {
    apiVersion: "foo/v1",
    kind: "Sub",
    metadata: { unknownSubMeta: "unknown", name: "subobject", namespace: at.name },
  };
  const object = definition.object("meta", { spec: { template } });
  const body = { ...object, metadata: { ...object.metadata, unknownMeta: "unknown" } };
  const text = JSON.stringify(body);
  await expectStrictError(at, definition.objects, text, /unknown field "metadata\.unknownMeta"/);
  await expectStrictError(at, definition.objects, text, /unknown field "spec\.template\.metadata\.unknownSubMeta"/);
}

async function detectTyped(at: TestNamespace): Promise<void> {
  const labels = { app: "web" };
  const deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", unknownMeta: "unknown", labels },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, unknownSubMeta: "unknown" },
        spec: { containers: [{ name: "c", image: "i:1" }] },
      },
    },
  };
  const path = at.pathOf("apps/v1", "Deployment");
  const pattern = /strict decoding error: unknown field "metadata\.unknownMeta"/;
  await expectStrictError(at, path, JSON.stringify(deployment), pattern);
  await expectStrictError(
    at,
    path,
    JSON.stringify(deployment),
    /unknown field "spec\.template\.metadata\.unknownSubMeta"/,
  );
}

async function detectUnknownAndDuplicate(at: TestNamespace): Promise<void> {
  const labels = { app: "web" };
  const container = { name: "c", image: "i:1", imagePullPolicy: "Always", unknownField: "x" };
  const spec = {
    replicas: 1,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [container] } },
  };
  const deployment = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", labels }, spec };
  const text = JSON.stringify(deployment).replace('"replicas":1', '"replicas":1,"replicas":2');
  const path = at.pathOf("apps/v1", "Deployment");
  await expectStrictError(at, path, text, /unknown field "spec\.template\.spec\.containers\[0\]\.unknownField"/);
  await expectStrictError(at, path, text, /duplicate field "spec\.replicas"/);
}

/** kubectl creates and applies the object with strict validation. */
function testStrictValidation(schema: object, fields: object): Behaviour {
  return async (at) => {
    await using definition = await define(at, { versions: { v1: { schema } } });
    const body = definition.object("one", fields);
    const strictly = `${definition.objects}?fieldValidation=Strict`;
    assert.equal((await at.api.send(`POST ${strictly}`, { body })).status, 201);
    await at.run("apply -f - --server-side --validate=strict --force-conflicts", JSON.stringify(body));
    await at.run("delete -f -", JSON.stringify(body));
    await at.run("create -f - --validate=strict", JSON.stringify(body));
  };
}

async function rejectExtra(at: TestNamespace): Promise<void> {
  await using definition = await define(at, { versions: { v1: { schema } } });
  const body = JSON.stringify(definition.object("one", { spec: { bars: [{ name: "a", unknownField: "x" }] } }));
  await expectStrictError(at, definition.objects, body, /unknown field "spec\.bars\[0\]\.unknownField"/);
  const { code, stderr } = await at.kubectl(["apply", "-f", "-", "--server-side", "--validate=strict"], body);
  assert.notEqual(code, 0);
  assert.match(stderr, /unknownField/);
}

export const publishedSchemas: Behaviours = {
  "CustomResourcePublishOpenAPI works for multiple CRDs of different groups": publishGroups,
  "CustomResourcePublishOpenAPI works for multiple CRDs of same group but different versions": publishVersions,
  "FieldValidation should create/apply a CR with unknown fields for CRD with no validation schema":
    testStrictValidation(preserving, unknown),
  "FieldValidation should create/apply a valid CR for CRD with validation schema": testStrictValidation(schema, {
    spec: { bars: [{ name: "a", age: "1", bazs: ["b"] }] },
  }),
  "FieldValidation should create/apply an invalid CR with extra properties for CRD with validation schema": rejectExtra,
  "FieldValidation should detect unknown and duplicate fields of a typed object": detectUnknownAndDuplicate,
  "CustomResourcePublishOpenAPI removes definition from spec when one version gets changed to not be served":
    stopServing,
  "CustomResourcePublishOpenAPI updates the published spec when one version gets renamed": renameVersion,
  "CustomResourcePublishOpenAPI works for multiple CRDs of same group and version but different kinds": publishKinds,
  "CustomResourcePublishOpenAPI works for CRD with validation schema": testClientValidation,
  "CustomResourcePublishOpenAPI works for CRD without validation schema": testPreservedFields(
    preserving,
    unknown,
    /DESCRIPTION:\s+\S+/,
  ),
  "CustomResourcePublishOpenAPI works for CRD preserving unknown fields at the schema root": testPreservedFields(
    { ...preserving, description: "Free" },
    unknown,
    /KIND:\s+Widget/,
  ),
  "CustomResourcePublishOpenAPI works for CRD preserving unknown fields in an embedded object": testPreservedFields(
    { type: "object", description: "Free below", properties: { spec: { ...preserving, description: "Free fields" } } },
    { spec: unknown },
    /Free fields/,
    ".spec",
  ),
  "FieldValidation should detect duplicates in a CR when preserving unknown fields": detectDuplicates,
  "FieldValidation should detect unknown metadata fields in both the root and embedded object of a CR": detectMetadata,
  "FieldValidation should detect unknown metadata fields of a typed object": detectTyped,
};
