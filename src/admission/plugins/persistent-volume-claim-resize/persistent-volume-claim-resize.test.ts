import t from "tap";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { storageClassKind } from "../../../api/storage/storage-class/kind.ts";
import { pluginDeps, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { persistentVolumeClaimResize } from "./persistent-volume-claim-resize.ts";

const claim = (spec: object = {}, more: object = {}): PersistentVolumeClaim =>
  ({ metadata: { name: "c", namespace: "default" }, spec, ...more }) as PersistentVolumeClaim;

t.test("persistentVolumeClaimResize() allows growth of bound claims whose class allows expansion", async (t) => {
  const growing = { metadata: { name: "grows" }, provisioner: "p", allowVolumeExpansion: true };
  const plugin = persistentVolumeClaimResize(
    pluginDeps([
      [storageClassKind, growing as never],
      [storageClassKind, { ...growing, metadata: { name: "stays" }, allowVolumeExpansion: false } as never],
    ]),
  );
  const sized = (storage: string, storageClassName: string, phase = "Bound") =>
    claim({ storageClassName, resources: { requests: { storage } } }, { status: { phase } });
  const change = (next: PersistentVolumeClaim, oldObject: PersistentVolumeClaim) =>
    rejectionOf(runPlugin(plugin, persistentVolumeClaimKind, next, { oldObject }));
  t.equal(await change(sized("2Gi", "grows"), sized("1Gi", "grows")), "");
  t.equal(await change(sized("1024Mi", "stays"), sized("1Gi", "stays")), "");
  t.match(
    await change(sized("2Gi", "grows"), sized("1Gi", "grows", "Pending")),
    /^persistentvolumeclaims "c" is forbidden: Only bound persistent volume claims can be expanded$/,
  );
  for (const name of ["stays", "gone", ""]) {
    t.match(
      await change(sized("2Gi", name), sized("1Gi", name)),
      /only dynamically provisioned pvc can be resized and the storageclass .* must support resize$/,
    );
  }
});
