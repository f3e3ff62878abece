import type { Strategy } from "../../kind.ts";
import { keepStatus } from "../../strategy.ts";
import { addProtectionFinalizer } from "../persistent-volume/in-use-protection.ts";
import type { PersistentVolumeClaimSpec } from "../volume/schema.ts";
import { setPersistentVolumeClaimDefaults } from "./defaults.ts";
import type { PersistentVolumeClaim } from "./schema.ts";
import { validatePersistentVolumeClaim, validatePersistentVolumeClaimUpdate } from "./validation.ts";
import { persistentVolumeClaimWarnings } from "./warnings.ts";

/**
 * `dataSource` supports claims and snapshots only; other kinds in it are dropped, unless the claim has or had a
 * `dataSourceRef`, which supports any kind. Each is set from the other where only one is set.
 */
function syncDataSources(
  spec: PersistentVolumeClaimSpec,
  previous?: PersistentVolumeClaimSpec,
): PersistentVolumeClaimSpec {
  const { dataSource, dataSourceRef, ...rest } = spec;
  const known = dataSourceRef ?? previous?.dataSource ?? previous?.dataSourceRef;
  const source = known !== undefined || isKnownSource(dataSource) ? dataSource : undefined;
  if (dataSourceRef === undefined)
    return source === undefined ? rest : { ...rest, dataSource: source, dataSourceRef: source };
  if (source !== undefined) return { ...rest, dataSource: source, dataSourceRef };
  return dataSourceRef.namespace ? { ...rest, dataSourceRef } : { ...rest, dataSource: dataSourceRef, dataSourceRef };
}

function isKnownSource(source: PersistentVolumeClaimSpec["dataSource"]): boolean {
  const group = source?.apiGroup ?? "";
  if (source?.kind === "PersistentVolumeClaim") return group === "";
  return source?.kind === "VolumeSnapshot" && group === "snapshot.storage.k8s.io";
}

export const persistentVolumeClaimStrategy: Strategy<PersistentVolumeClaim> = {
  setDefaults: setPersistentVolumeClaimDefaults,
  prepareForCreate: (object) => ({
    ...addProtectionFinalizer(object, "kubernetes.io/pvc-protection"),
    spec: syncDataSources(object.spec ?? {}),
    status: { phase: "Pending" },
  }),
  prepareForUpdate: (next, previous) => ({
    ...keepStatus(next, previous),
    spec: syncDataSources(next.spec ?? {}, previous.spec),
  }),
  validate: validatePersistentVolumeClaim,
  validateUpdate: validatePersistentVolumeClaimUpdate,
  warnings: persistentVolumeClaimWarnings,
};
