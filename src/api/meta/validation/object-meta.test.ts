import t from "tap";
import { nodeKind } from "../../core/node/kind.ts";
import { podKind } from "../../core/pod/kind.ts";
import type { ObjectMeta } from "../object-meta.ts";
import { validateObjectMeta, validateObjectMetaUpdate } from "./object-meta.ts";

const good: ObjectMeta = { name: "web", namespace: "default" };

function errorsOf(meta: ObjectMeta, kind = podKind): readonly string[] {
  return validateObjectMeta({ ...good, ...meta }, kind).map((e) => `${e.type} ${e.field}`);
}

t.test("validateObjectMeta() reports the field of each error", async (t) => {
  t.same(errorsOf({}), []);
  t.same(errorsOf({ name: "" }), ["FieldValueRequired metadata.name"]);
  t.same(errorsOf({ name: "Web" }), ["FieldValueInvalid metadata.name"]);
  for (const generateName of ["web-", "W-", "a_-"]) t.same(errorsOf({ generateName }), [], generateName);
  for (const generateName of ["-", "Web-", "é-"]) {
    t.same(errorsOf({ generateName }), ["FieldValueInvalid metadata.generateName"], generateName);
  }
  t.same(errorsOf({ namespace: "a.b" }), ["FieldValueInvalid metadata.namespace"]);
  t.same(
    validateObjectMeta(good, nodeKind).map((e) => e.field),
    ["metadata.namespace"],
  );
  t.same(errorsOf({ labels: { "a b": "c d" } }), [
    "FieldValueInvalid metadata.labels",
    "FieldValueInvalid metadata.labels",
  ]);
  t.same(errorsOf({ annotations: { a: "x".repeat(262_144) } }), ["FieldValueTooLong metadata.annotations"]);
  t.same(errorsOf({ finalizers: [""] }).length, 3);
  t.same(errorsOf({ finalizers: ["custom"] }), ["FieldValueInvalid metadata.finalizers[0]"]);
  t.same(errorsOf({ finalizers: ["orphan", "foregroundDeletion"] }), ["FieldValueInvalid metadata.finalizers"]);
  const owner = { apiVersion: "v1", kind: "Pod", name: "p", uid: "u", controller: true };
  t.same(errorsOf({ ownerReferences: [owner] }), []);
  t.same(errorsOf({ ownerReferences: [owner, owner] }), ["FieldValueInvalid metadata.ownerReferences"]);
  t.same(errorsOf({ ownerReferences: [{ ...owner, uid: "" }] }), ["FieldValueInvalid metadata.ownerReferences.uid"]);
  for (const apiVersion of ["", "/", "//", "a/b/c", "apps/", "v1/"]) {
    const versionless = ["FieldValueInvalid metadata.ownerReferences.apiVersion"];
    t.same(errorsOf({ ownerReferences: [{ ...owner, apiVersion }] }), versionless, apiVersion);
    t.same(errorsOf({ ownerReferences: [{ ...owner, apiVersion, kind: "Event" }] }), versionless, apiVersion);
  }
  for (const apiVersion of ["v1", "foo", "/v1", "a.b/v1", "/foo"]) {
    t.same(errorsOf({ ownerReferences: [{ ...owner, apiVersion }] }), [], apiVersion);
    const banned =
      apiVersion.endsWith("v1") && apiVersion !== "a.b/v1" ? ["FieldValueInvalid metadata.ownerReferences"] : [];
    t.same(errorsOf({ ownerReferences: [{ ...owner, apiVersion, kind: "Event" }] }), banned, apiVersion);
  }
});

t.test(
  "validateObjectMetaUpdate() rejects a new uid, and new finalizers while the object is being deleted",
  async (t) => {
    const previous = { metadata: { ...good, uid: "1" } };
    t.same(validateObjectMetaUpdate(previous, previous), []);
    const changed = { metadata: { ...good, uid: "2" } };
    t.same(
      validateObjectMetaUpdate(changed, previous).map((e) => e.field),
      ["metadata.uid"],
    );
    const terminating = { metadata: { ...good, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["a.b/c"] } };
    const more = { metadata: { ...terminating.metadata, uid: "2", finalizers: ["a.b/e", "a.b/c", "a.b/d", "a.b/d"] } };
    const found = validateObjectMetaUpdate(more, { metadata: { ...terminating.metadata, uid: "1" } });
    t.match(
      found.map((e) => [e.field, e.detail]),
      [
        ["metadata.finalizers", /found new finalizers \[\]string\{"a\.b\/d", "a\.b\/e"\}$/],
        ["metadata.uid", "field is immutable"],
      ],
    );
    t.same(validateObjectMetaUpdate({ metadata: { ...terminating.metadata, finalizers: [] } }, terminating), []);
  },
);

t.test("validateObjectMeta() shows the owners once for thousands of controllers", async (t) => {
  const owner = { apiVersion: "v1", kind: "Node", name: "n", uid: "u" };
  const many = (rest: object) => Array.from({ length: 8000 }, (_, i) => ({ ...owner, name: `n${i}`, ...rest }));
  const errors = validateObjectMeta({ ...good, ownerReferences: many({ controller: true }) }, podKind);
  t.equal(errors.length, 100);
  t.equal(new Set(errors.map(({ badValue }) => badValue)).size, 1, "one text of all owners");
  const empty = { apiVersion: "", kind: "", name: "", uid: "" };
  t.ok(validateObjectMeta({ ...good, ownerReferences: many(empty) }, podKind).length <= 104);
});
