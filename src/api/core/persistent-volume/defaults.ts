/** What is filled into persistent volumes, and into the specs of volumes that attachments carry. */
import type { PersistentVolume, PersistentVolumeSpec } from "./schema.ts";

export function setPersistentVolumeDefaults(volume: PersistentVolume): PersistentVolume {
  const spec = setPersistentVolumeSpecDefaults(volume.spec ?? {});
  return {
    ...volume,
    spec: {
      ...spec,
      persistentVolumeReclaimPolicy: spec.persistentVolumeReclaimPolicy || "Retain",
      volumeMode: spec.volumeMode ?? "Filesystem",
    },
    status: { ...volume.status, phase: volume.status?.phase || "Pending" },
  };
}

/** What a spec gets wherever it stands. */
export function setPersistentVolumeSpecDefaults(spec: PersistentVolumeSpec): PersistentVolumeSpec {
  const { hostPath } = spec;
  return hostPath === undefined ? spec : { ...spec, hostPath: { ...hostPath, type: hostPath.type ?? "" } };
}
