/** StorageObjectInUseProtection: adds the finalizers that keep volumes and claims from being deleted while in use. */
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import { matchesResource, metadataOf } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

const FINALIZERS: Readonly<Record<string, string>> = {
  [persistentVolumeKind.plural]: "kubernetes.io/pv-protection",
  [persistentVolumeClaimKind.plural]: "kubernetes.io/pvc-protection",
};

export function storageObjectInUseProtection(): AdmissionPlugin {
  return {
    name: "StorageObjectInUseProtection",
    handles: (attributes) =>
      matchesResource(attributes, persistentVolumeKind, ["CREATE"]) ||
      matchesResource(attributes, persistentVolumeClaimKind, ["CREATE"]),
    mutate({ kind, object }) {
      const finalizer = FINALIZERS[kind.plural];
      const { finalizers = [], ...metadata } = metadataOf(object);
      if (finalizer === undefined || finalizers.includes(finalizer)) return undefined;
      return { ...object, metadata: { ...metadata, finalizers: [...finalizers, finalizer] } };
    },
  };
}
