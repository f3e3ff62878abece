import t from "tap";
import type { PersistentVolume, PersistentVolumeSpec } from "./schema.ts";
import {
  validatePersistentVolume,
  validatePersistentVolumeSpec,
  validatePersistentVolumeUpdate,
} from "./validation.ts";

const base: PersistentVolumeSpec = { accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } };
const csi = { driver: "csi.example.com", volumeHandle: "h" };

function on(label: string, value = "a"): PersistentVolume {
  const terms = [{ matchExpressions: [{ key: label, operator: "In" as const, values: [value] }] }];
  return { spec: { ...base, csi, nodeAffinity: { required: { nodeSelectorTerms: terms } } } };
}

function changes(next: PersistentVolume, previous: PersistentVolume): readonly string[] {
  return validatePersistentVolumeUpdate(next, previous).map(({ field }) => field);
}

t.test(
  "validatePersistentVolumeUpdate() accepts the replacement of deprecated labels in the node affinity, and no other change",
  async (t) => {
    const [older, newer] = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"];
    t.same(changes(on(newer), on(older)), []);
    t.same(changes(on(older), on(newer)), ["nodeAffinity"]);
    t.same(changes(on(newer, "b"), on(older)), ["nodeAffinity"]);
    t.same(changes(on(newer), { spec: { ...base, csi } }), [], "what was not bound to nodes may be");
  },
);

t.test("validatePersistentVolumeUpdate() accepts a new secret for expansion, but no change of it", async (t) => {
  const secret = (name: string): PersistentVolume => ({
    spec: { ...base, csi: { ...csi, controllerExpandSecretRef: { name, namespace: "n" } } },
  });
  t.same(changes(secret("s"), { spec: { ...base, csi } }), []);
  t.same(changes(secret("s"), secret("r")), ["spec.persistentvolumesource"]);
});

t.test("validatePersistentVolumeSpec() requires exactly one source, apart from flexVolume", async (t) => {
  const errorsOf = (spec: PersistentVolumeSpec) =>
    validatePersistentVolumeSpec({ ...base, ...spec }, "v", "spec").map(({ type, field }) => `${type} ${field}`);
  t.same(errorsOf({ csi, cephfs: { monitors: ["m"] } }), ["FieldValueForbidden spec.csi"]);
  t.same(errorsOf({ nfs: { server: "s", path: "/" }, cephfs: { monitors: [] } }), ["FieldValueForbidden spec.cephFS"]);
  t.same(errorsOf({ nfs: { server: "s", path: "/" }, flexVolume: { driver: "" } }), [
    "FieldValueRequired spec.flexVolume.driver",
  ]);
  t.same(errorsOf({ gcePersistentDisk: { pdName: "" } }), ["FieldValueRequired spec.persistentDisk.pdName"]);
  t.same(errorsOf({}), ["FieldValueRequired spec"]);
});

t.test(
  "validatePersistentVolume() rejects recycling the node's root directory, and mount options for CSI",
  async (t) => {
    for (const path of ["/", "//", "/.", "/./"]) {
      const spec = { ...base, hostPath: { path }, persistentVolumeReclaimPolicy: "Recycle" as const };
      t.match(validatePersistentVolume({ spec }), [{ field: "spec.persistentVolumeReclaimPolicy" }], path);
    }
    const annotations = { "volume.beta.kubernetes.io/mount-options": "ro" };
    t.equal(validatePersistentVolume({ metadata: { annotations }, spec: { ...base, csi } }).length, 1);
    const nfs = { server: "s", path: "/" };
    t.same(validatePersistentVolume({ metadata: { annotations }, spec: { ...base, nfs } }), []);
  },
);

t.test("the class of volume attributes needs a name and a CSI driver, and is not removed", async (t) => {
  const gates = (...names: readonly string[]) => ({ has: (name: string) => names.includes(name) });
  const on = gates("VolumeAttributesClass");
  const nfs = { server: "s", path: "/" };
  const errors = (spec: PersistentVolumeSpec, features = on) =>
    validatePersistentVolume({ spec: { ...base, ...spec } }, undefined, features).map((e) => `${e.type} ${e.field}`);
  t.same(errors({ csi, volumeAttributesClassName: "gold" }), []);
  t.same(errors({ csi, volumeAttributesClassName: "" }), ["FieldValueRequired spec.volumeAttributesClassName"]);
  t.same(errors({ csi, volumeAttributesClassName: "é/" }), ["FieldValueInvalid spec.volumeAttributesClassName"]);
  t.same(errors({ nfs, volumeAttributesClassName: "gold" }), ["FieldValueRequired spec.csi"]);
  t.same(errors({ nfs, volumeAttributesClassName: "" }, gates()), [], "the gate is off");
  const classed: PersistentVolume = { spec: { ...base, csi, volumeAttributesClassName: "gold" } };
  const other: PersistentVolume = { spec: { ...base, csi, volumeAttributesClassName: "silver" } };
  const details = (next: PersistentVolume, features = on) =>
    validatePersistentVolumeUpdate(next, classed, features).map(({ detail }) => detail);
  t.same(details(other), []);
  t.same(details({ spec: { ...base, csi } }), ["update from non-nil value to nil is forbidden"]);
  t.match(details(other, gates()), [/^update is forbidden when the VolumeAttributesClass feature gate is disabled$/]);
});
