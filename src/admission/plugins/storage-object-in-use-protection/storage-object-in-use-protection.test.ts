import t from "tap";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { storageObjectInUseProtection } from "./storage-object-in-use-protection.ts";

const claim = (spec: object = {}, more: object = {}): PersistentVolumeClaim =>
  ({ metadata: { name: "c", namespace: "default" }, spec, ...more }) as PersistentVolumeClaim;

t.test("storageObjectInUseProtection() adds the protection finalizer to new volumes and claims once", async (t) => {
  const plugin = storageObjectInUseProtection();
  const finalizers = ["example.com/mine"];
  const volume = { metadata: { name: "v", finalizers }, spec: {} } as never;
  t.same((await runPlugin(plugin, persistentVolumeKind, volume)).object.metadata?.finalizers, [
    "example.com/mine",
    "kubernetes.io/pv-protection",
  ]);
  const { object } = await runPlugin(plugin, persistentVolumeClaimKind, claim());
  t.same(object.metadata?.finalizers, ["kubernetes.io/pvc-protection"]);
  t.equal((await runPlugin(plugin, persistentVolumeClaimKind, object)).object, object);
});
