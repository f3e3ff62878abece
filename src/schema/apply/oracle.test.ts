/** The test data of structured-merge-diff: schemas, objects, and their field sets. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t, { type Test } from "tap";
import { ManagedObject, schemaTypes, yaml } from "../../testing/schema/apply-fixture.ts";
import { compare } from "./compare.ts";
import { canonicalize, isEmptySet, noFields, pathsOf, setsEqual, sizeOf } from "./fieldpath/field-set.ts";
import { parseFields } from "./fieldpath/parse-fields.ts";
import { formatPath } from "./fieldpath/path-element.ts";
import { merge } from "./merge.ts";
import { shapeOf } from "./shape.ts";
import { toFieldSet } from "./to-field-set.ts";
import { validateTyped } from "./typed-validation.ts";

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../shared", import.meta.url));
const folder = `${shared}/oracles/structured-merge-diff/`;
const present = existsSync(folder);
const read = (file: string): string => readFileSync(folder + file, "utf8");

function oracle(title: string, body: (t: Test) => void): void {
  t.test(title, (t) => {
    if (present) body(t);
    else t.comment("shared/ is not present: skipped");
    t.end();
  });
}

const K8S = "k8s-schema.yaml";
const CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinition";

const sets = [
  [K8S, "io.k8s.api.core.v1.Pod", "pod.yaml", "podset.json"],
  [K8S, "io.k8s.api.core.v1.Node", "node.yaml", "nodeset.json"],
  [K8S, "io.k8s.api.core.v1.Endpoints", "endpoints.yaml", "endpointsset.json"],
  [K8S, CRD, "prometheus-crd.yaml", "prometheus-crdset.json"],
] as const;

for (const [schema, type, object, set] of sets) {
  oracle(`compare() with nothing adds the fields of ${set}, in this order`, (t) => {
    const shape = shapeOf(schemaTypes(read(schema))(type));
    const value = yaml(read(object));
    validateTyped(shape, value);
    const { added, modified, removed } = compare(shape, {}, value);
    t.equal(JSON.stringify(canonicalize(added)), read(set).trim());
    t.ok(isEmptySet(modified) && isEmptySet(removed));
    const parsed = parseFields(JSON.parse(read(set)));
    t.ok(setsEqual(parsed, added));
    t.equal(JSON.stringify(canonicalize(parsed)), read(set).trim());
  });
}

const objects = [
  ...sets.map(([schema, type, object]) => [schema, type, object] as const),
  ["k8s-schema-100pct-fieldoverride.yaml", "io.k8s.api.core.v1.Node", "node.yaml"],
  ["k8s-schema-10pct-fieldoverride.yaml", "io.k8s.api.core.v1.Node", "node.yaml"],
  ["k8s-schema-100pct-fieldoverride.yaml", "io.k8s.api.core.v1.Endpoints", "endpoints.yaml"],
  ["k8s-schema-10pct-fieldoverride.yaml", "io.k8s.api.core.v1.Endpoints", "endpoints.yaml"],
  ["apiresourceimport.yaml", "apiresourceimport", "apiresourceimport-cr.yaml"],
  [K8S, "io.k8s.api.apps.v1.Deployment", "k8s-deployment.yaml"],
] as const;

for (const [schema, type, object] of objects) {
  oracle(
    `apply() of ${object} by two managers shares all fields; updates with the same object change nothing (${schema})`,
    (t) => {
      const typeNamed = schemaTypes(read(schema));
      const value = yaml(read(object));
      const shape = shapeOf(typeNamed(type));
      const managed = new ManagedObject(typeNamed(type), ["v1", "v2"]);
      t.same(managed.apply("controller", value), []);
      t.same(managed.apply("other", value), []);
      const fields = canonicalize(toFieldSet(shape, value));
      t.ok(sizeOf(fields) > 3);
      t.same(managed.owned(), { controller: fields, other: fields });
      managed.update("updater", managed.value);
      t.same(Object.keys(managed.owned()), ["controller", "other"]);
      const updated = new ManagedObject(typeNamed(type), ["v1", "v2"]);
      updated.update("controller", value);
      updated.update("other", value, { version: "v2" });
      t.same(Object.keys(updated.owned()), ["controller"]);
    },
  );
}

oracle("validateTyped() accepts the schema of schemas and reports the errors of an invalid schema", (t) => {
  const shape = shapeOf(schemaTypes(read("schema.yaml"))("schema"));
  for (const file of ["schema.yaml", "struct.yaml", "list.yaml", "scalar.yaml"]) validateTyped(shape, yaml(read(file)));
  t.throws(() => validateTyped(shape, yaml(read("bad-schema.yaml"))), /omits key field "name"/);
});

oracle("merge() adds types, and replaces one with the same name", (t) => {
  const shape = shapeOf(schemaTypes(read("schema.yaml"))("schema"));
  const names = (value: unknown): readonly string[] =>
    (value as { readonly types: readonly { readonly name: string }[] }).types.map(({ name }) => name);
  t.same(names(merge(shape, yaml(read("struct.yaml")), yaml(read("list.yaml")))), ["struct", "structField", "list"]);
  t.same(merge(shape, yaml(read("bad-scalar.yaml")), yaml(read("scalar.yaml"))), yaml(read("scalar.yaml")));
  t.same(merge(shape, yaml(read("scalar.yaml")), yaml(read("bad-scalar.yaml"))), yaml(read("bad-scalar.yaml")));
});

oracle("compare() reports a changed type of a scalar", (t) => {
  const shape = shapeOf(schemaTypes(read("schema.yaml"))("schema"));
  const { added, modified, removed } = compare(shape, yaml(read("scalar.yaml")), yaml(read("bad-scalar.yaml")));
  t.same([added, removed], [noFields, noFields]);
  const [, expected] = read("scalar-compare-output.txt").trim().split("\n");
  t.same([...pathsOf(modified)].map(formatPath), [expected]);
});
