import t from "tap";
import { nodeKind } from "../../core/node/kind.ts";
import { podKind } from "../../core/pod/kind.ts";
import type { ObjectMeta } from "../object-meta.ts";
import { validateObjectMeta, validateObjectMetaUpdate } from "./object-meta.ts";

const good: ObjectMeta = { name: "web", namespace: "default" };

function faults(meta: ObjectMeta, kind = podKind): readonly string[] {
  return validateObjectMeta({ ...good, ...meta }, kind).map((e) => `${e.type} ${e.field}`);
}

t.test("validateObjectMeta() names each fault", async (t) => {
  t.same(faults({}), []);
  t.same(faults({ name: "" }), ["FieldValueRequired metadata.name"]);
  t.same(faults({ name: "Web" }), ["FieldValueInvalid metadata.name"]);
  t.same(faults({ generateName: "web-" }), []);
  t.same(faults({ namespace: "a.b" }), ["FieldValueInvalid metadata.namespace"]);
  t.same(
    validateObjectMeta(good, nodeKind).map((e) => e.field),
    ["metadata.namespace"],
  );
  t.same(faults({ labels: { "a b": "c d" } }), [
    "FieldValueInvalid metadata.labels",
    "FieldValueInvalid metadata.labels",
  ]);
  t.same(faults({ annotations: { a: "x".repeat(262_144) } }), ["FieldValueTooLong metadata.annotations"]);
  t.same(faults({ finalizers: [""] }).length, 3);
  t.same(faults({ finalizers: ["custom"] }), ["FieldValueInvalid metadata.finalizers[0]"]);
  t.same(faults({ finalizers: ["orphan", "foregroundDeletion"] }), ["FieldValueInvalid metadata.finalizers"]);
  const owner = { apiVersion: "v1", kind: "Pod", name: "p", uid: "u", controller: true };
  t.same(faults({ ownerReferences: [owner] }), []);
  t.same(faults({ ownerReferences: [owner, owner] }), ["FieldValueInvalid metadata.ownerReferences"]);
  t.same(faults({ ownerReferences: [{ ...owner, uid: "" }] }), ["FieldValueInvalid metadata.ownerReferences.uid"]);
});

t.test("validateObjectMetaUpdate() keeps identity and the finalizers of what is going away", async (t) => {
  const previous = { metadata: { ...good, uid: "1" } };
  t.same(validateObjectMetaUpdate(previous, previous), []);
  const changed = { metadata: { ...good, uid: "2" } };
  t.same(
    validateObjectMetaUpdate(changed, previous).map((e) => e.field),
    ["metadata.uid"],
  );
  const going = { metadata: { ...good, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["a.b/c"] } };
  const more = { metadata: { ...going.metadata, finalizers: ["a.b/c", "a.b/d"] } };
  t.same(
    validateObjectMetaUpdate(more, going).map((e) => e.field),
    ["metadata.finalizers"],
  );
  t.same(validateObjectMetaUpdate({ metadata: { ...going.metadata, finalizers: [] } }, going), []);
});
