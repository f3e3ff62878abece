import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import type { Column } from "../../kind.ts";
import { accessModesText } from "./access-modes.ts";
import type { PersistentVolume } from "./schema.ts";
import { storageClassNameOf } from "./storage-class-name.ts";

function claimOf({ spec }: PersistentVolume): string {
  const claim = spec?.claimRef;
  return claim === undefined ? "" : `${claim.namespace ?? ""}/${claim.name ?? ""}`;
}

export const persistentVolumeColumns: readonly Column<PersistentVolume>[] = [
  nameColumn,
  column("Capacity", (object) => object.spec?.capacity?.storage ?? "0"),
  column("Access Modes", (object) => accessModesText(object.spec?.accessModes)),
  column("Reclaim Policy", (object) => object.spec?.persistentVolumeReclaimPolicy ?? ""),
  column("Status", (object) =>
    object.metadata?.deletionTimestamp === undefined ? (object.status?.phase ?? "") : "Terminating",
  ),
  column("Claim", claimOf),
  column("StorageClass", storageClassNameOf),
  column("VolumeAttributesClass", (object) => object.spec?.volumeAttributesClassName ?? "<unset>"),
  column("Reason", (object) => object.status?.reason ?? ""),
  ageColumn,
  wideColumn("VolumeMode", (object) => object.spec?.volumeMode ?? "<unset>"),
];
