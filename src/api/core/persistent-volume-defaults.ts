/** What is filled into persistent volumes, and into the specs of volumes that attachments carry. */
import type { PersistentVolume, PersistentVolumeSpec } from "./persistent-volume.ts";

export function setPersistentVolumeDefaults(volume: PersistentVolume): PersistentVolume {
  const spec = volume.spec ?? {};
  return {
    ...volume,
    spec: {
      ...setPersistentVolumeSpecDefaults(spec),
      persistentVolumeReclaimPolicy: spec.persistentVolumeReclaimPolicy || "Retain",
    },
    status: { ...volume.status, phase: volume.status?.phase || "Pending" },
  };
}

export function setPersistentVolumeSpecDefaults(spec: PersistentVolumeSpec): PersistentVolumeSpec {
  const { hostPath, volumeMode = "Filesystem" } = spec;
  return {
    ...spec,
    volumeMode,
    ...(hostPath === undefined ? {} : { hostPath: { ...hostPath, type: hostPath.type ?? "" } }),
  };
}
