import t from "tap";
import type { PersistentVolumeClaimSpec } from "../volume/schema.ts";
import { persistentVolumeClaimKind } from "./kind.ts";
import type { PersistentVolumeClaim } from "./schema.ts";
import { validatePersistentVolumeClaimUpdate } from "./validation.ts";

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
      [`metadata.annotations[${annotation}]`],
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
