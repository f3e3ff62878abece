/** Defaults of persistent volume claims, and of claim templates. */
import type { PersistentVolumeClaimSpec } from "../volume/schema.ts";
import type { PersistentVolumeClaim } from "./schema.ts";

export function setPersistentVolumeClaimDefaults(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return {
    ...claim,
    spec: setPersistentVolumeClaimSpecDefaults(claim.spec ?? {}),
    status: { ...claim.status, phase: claim.status?.phase || "Pending" },
  };
}

export function setPersistentVolumeClaimSpecDefaults(spec: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec {
  return spec.volumeMode === undefined ? { ...spec, volumeMode: "Filesystem" } : spec;
}
