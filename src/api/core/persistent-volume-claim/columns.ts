import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import type { Column } from "../../kind.ts";
import { accessModesText } from "../persistent-volume/access-modes.ts";
import { storageClassNameOf } from "../persistent-volume/storage-class-name.ts";
import type { PersistentVolumeClaim } from "./schema.ts";

export const persistentVolumeClaimColumns: readonly Column<PersistentVolumeClaim>[] = [
  nameColumn,
  column("Status", (object) =>
    object.metadata?.deletionTimestamp === undefined ? (object.status?.phase ?? "") : "Terminating",
  ),
  column("Volume", (object) => object.spec?.volumeName ?? ""),
  column("Capacity", (object) => (object.spec?.volumeName ? (object.status?.capacity?.storage ?? "0") : "")),
  column("Access Modes", (object) => (object.spec?.volumeName ? accessModesText(object.status?.accessModes) : "")),
  column("StorageClass", storageClassNameOf),
  column("VolumeAttributesClass", (object) => object.spec?.volumeAttributesClassName ?? "<unset>"),
  ageColumn,
  wideColumn("VolumeMode", (object) => object.spec?.volumeMode ?? "<unset>"),
];
