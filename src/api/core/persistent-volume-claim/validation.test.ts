import t from "tap";
import type { PersistentVolumeClaimSpec } from "../volume/schema.ts";
import { persistentVolumeClaimKind } from "./kind.ts";
import type { PersistentVolumeClaim } from "./schema.ts";
import {
  validatePersistentVolumeClaim,
  validatePersistentVolumeClaimSpec,
  validatePersistentVolumeClaimUpdate,
} from "./validation.ts";

const spec: PersistentVolumeClaimSpec = {
  accessModes: ["ReadWriteOnce"],
  resources: { requests: { storage: "10Gi" } },
  volumeMode: "Filesystem",
};
const bound: PersistentVolumeClaim = { spec, status: { phase: "Bound", capacity: { storage: "5Gi" } } };

function errorsOf(next: PersistentVolumeClaimSpec, previous = bound): readonly string[] {
  return validatePersistentVolumeClaimUpdate({ ...previous, spec: next }, previous).map(({ field }) => field);
}

function sized(storage: string): PersistentVolumeClaimSpec {
  return { ...spec, resources: { requests: { storage } } };
}

t.test(
  "validatePersistentVolumeClaimUpdate() accepts expansion of a bound claim, and its reversal down to the capacity",
  async (t) => {
    t.same(errorsOf(sized("20Gi")), []);
    t.same(errorsOf(sized("6Gi")), [], "more than the volume has");
    t.same(errorsOf(sized("5Gi")), ["spec.resources.requests.storage"], "the capacity of the volume");
    t.same(errorsOf(sized("20Gi"), { ...bound, status: { phase: "Pending" } }), ["spec"]);
    t.same(errorsOf(sized("10737418240")), [], "an equal quantity in another notation");
  },
);

t.test(
  "validatePersistentVolumeClaimUpdate() accepts a class that moves from the annotation to the spec",
  async (t) => {
    const annotation = "volume.beta.kubernetes.io/storage-class";
    const previous: PersistentVolumeClaim = { ...bound, metadata: { annotations: { [annotation]: "fast" } } };
    t.same(errorsOf({ ...spec, storageClassName: "fast" }, previous), []);
    t.same(errorsOf({ ...spec, storageClassName: "slow" }, previous), ["spec"]);
    t.same(errorsOf({ ...spec, storageClassName: "slow" }), [], "a claim without a class may get one");
    const changed = { ...previous, metadata: { annotations: { [annotation]: "slow" } } };
    t.same(
      validatePersistentVolumeClaimUpdate(changed, previous).map(({ field }) => field),
      [`metadata.annotations.${annotation}`],
    );
  },
);

t.test("persistentVolumeClaimKind sets dataSource and dataSourceRef from each other", async (t) => {
  const created = (more: PersistentVolumeClaimSpec) => {
    const sent: PersistentVolumeClaim = { spec: { ...spec, ...more } };
    return persistentVolumeClaimKind.strategy.prepareForCreate?.(sent, "2026-01-01T00:00:00Z").spec;
  };
  const claim = { kind: "PersistentVolumeClaim", name: "a" };
  t.same(created({ dataSource: claim })?.dataSourceRef, claim);
  t.same(created({ dataSourceRef: claim })?.dataSource, claim);
  t.same(created({ dataSource: { kind: "Pod", name: "a" } }), spec, "dataSource supports no other kinds");
});

const gates = (...names: readonly string[]) => ({ has: (name: string) => names.includes(name) });
const classed = (name: string | undefined): PersistentVolumeClaim => ({
  ...bound,
  spec: { ...spec, ...(name === undefined ? {} : { volumeAttributesClassName: name }) },
});

t.test("claims may change their class of volume attributes, but not remove it", async (t) => {
  const on = gates("VolumeAttributesClass", "RecoverVolumeExpansionFailure");
  const cases: readonly (readonly [from: string | undefined, to: string | undefined, errors: readonly RegExp[]])[] = [
    [undefined, "gold", []],
    [undefined, "", []],
    ["gold", "silver", []],
    ["", "gold", []],
    ["gold", undefined, [/^update from non-nil value to nil is forbidden$/]],
    ["", undefined, [/^update from non-nil value to nil is forbidden$/]],
    ["gold", "", [/^update from non-nil value to an empty string is forbidden$/]],
  ];
  for (const [from, to, errors] of cases) {
    const found = validatePersistentVolumeClaimUpdate(classed(to), classed(from), on);
    t.match(
      found.map(({ detail }) => detail),
      errors,
      `${from} to ${to}`,
    );
    t.equal(found.length, errors.length);
    t.ok(found.every(({ type, field }) => `${type} ${field}` === "FieldValueForbidden spec.volumeAttributesClassName"));
  }
  const off = gates("RecoverVolumeExpansionFailure");
  t.match(validatePersistentVolumeClaimUpdate(classed("silver"), classed("gold"), off), [
    { detail: "update is forbidden when the VolumeAttributesClass feature gate is disabled" },
  ]);
  t.equal(validatePersistentVolumeClaimUpdate(classed(undefined), classed("gold"), off).length, 2);
});

t.test("the name of a class of volume attributes is a DNS subdomain", async (t) => {
  const on = gates("VolumeAttributesClass");
  const errors = (name: string, features = on, previous?: PersistentVolumeClaim) =>
    validatePersistentVolumeClaim(classed(name), previous, features).map(({ field }) => field);
  for (const name of ["", "gold", "a.b"]) t.same(errors(name), [], name);
  for (const name of ["Gold", "a/b", "-", "é", "__proto__", "x".repeat(254)]) {
    t.same(errors(name), ["spec.volumeAttributesClassName"], name);
  }
  t.same(errors("Gold", gates()), [], "the gate is off");
  t.same(errors("Gold", gates(), classed("gold")), ["spec.volumeAttributesClassName"], "the stored claim has a class");
});

t.test("a claim shrinks only while RecoverVolumeExpansionFailure is on, or after an expansion", async (t) => {
  const shrink = (previous: PersistentVolumeClaim) =>
    validatePersistentVolumeClaimUpdate({ ...previous, spec: sized("6Gi") }, previous, gates()).map((e) => e.detail);
  t.same(shrink(bound), ["field can not be less than previous value"]);
  const expanding = { ...bound, status: { ...bound.status, allocatedResources: { storage: "10Gi" } } };
  t.same(shrink(expanding), []);
});

t.test("dataSource and a dataSourceRef with a namespace exclude each other", async (t) => {
  const dataSource = { kind: "PersistentVolumeClaim", name: "a" };
  const dataSourceRef = { ...dataSource, namespace: "other" };
  t.match(validatePersistentVolumeClaimSpec({ ...spec, dataSource, dataSourceRef }, "spec"), [
    { field: "spec", detail: "may not be specified when dataSourceRef.namespace is specified" },
  ]);
});

t.test("the difference that an update shows has the name of a volume that it may set", async (t) => {
  const next = { ...spec, volumeName: "v", accessModes: ["ReadWriteMany" as const] };
  const [error] = validatePersistentVolumeClaimUpdate({ ...bound, spec: next }, bound);
  t.equal(error?.field, "spec");
  t.notMatch(error?.detail, /[-+]\s+VolumeName/);
  t.same(errorsOf({ ...spec, volumeName: "v" }), []);
  t.same(errorsOf({ ...spec, volumeName: "w" }, { ...bound, spec: { ...spec, volumeName: "v" } }), ["spec"]);
});
