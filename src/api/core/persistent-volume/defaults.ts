/** Defaults of persistent volumes, and of the inline volume specs of attachments. */
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

/** The defaults of all volume specs. */
export function setPersistentVolumeSpecDefaults(spec: PersistentVolumeSpec): PersistentVolumeSpec {
  const { hostPath } = spec;
  return hostPath === undefined ? spec : { ...spec, hostPath: { ...hostPath, type: hostPath.type ?? "" } };
}
