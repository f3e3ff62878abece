import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import { allVerbs, type Column, type Kind, type Strategy } from "../../kind.ts";
import { keepStatus, replaceStatus, statusSubresource } from "../../strategy.ts";
import { accessModesText } from "../persistent-volume/access-modes.ts";
import { addProtectionFinalizer } from "../persistent-volume/in-use-protection.ts";
import { storageClassNameOf } from "../persistent-volume/storage-class-name.ts";
import type { PersistentVolumeClaimSpec } from "../volume/schema.ts";
import { setPersistentVolumeClaimDefaults } from "./defaults.ts";
import { type PersistentVolumeClaim, persistentVolumeClaim } from "./schema.ts";
import {
  validatePersistentVolumeClaim,
  validatePersistentVolumeClaimStatusUpdate,
  validatePersistentVolumeClaimUpdate,
} from "./validation.ts";
import { persistentVolumeClaimWarnings } from "./warnings.ts";

/** Members whose feature is off unless asked for go, unless the claim had them. */
function dropDisabledFields(
  spec: PersistentVolumeClaimSpec,
  previous?: PersistentVolumeClaimSpec,
): PersistentVolumeClaimSpec {
  const { volumeAttributesClassName: attributes, dataSourceRef: reference, ...rest } = spec;
  const keepsReference = !reference?.namespace || previous?.dataSourceRef?.namespace !== undefined;
  return {
    ...rest,
    ...(reference !== undefined && keepsReference ? { dataSourceRef: reference } : {}),
    ...(attributes !== undefined && previous?.volumeAttributesClassName !== undefined
      ? { volumeAttributesClassName: attributes }
      : {}),
  };
}

/**
 * The older member knows claims and snapshots only, and what else it names is dropped. The newer one knows everything.
 * What only one of them says, the other gets too.
 */
function syncDataSources(
  spec: PersistentVolumeClaimSpec,
  previous?: PersistentVolumeClaimSpec,
): PersistentVolumeClaimSpec {
  const { dataSource, dataSourceRef, ...rest } = spec;
  const source = previous?.dataSource !== undefined || isKnownSource(dataSource) ? dataSource : undefined;
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

const persistentVolumeClaimStrategy: Strategy<PersistentVolumeClaim> = {
  setDefaults: setPersistentVolumeClaimDefaults,
  prepareForCreate: (object) => ({
    ...addProtectionFinalizer(object, "kubernetes.io/pvc-protection"),
    spec: syncDataSources(dropDisabledFields(object.spec ?? {})),
    status: { phase: "Pending" },
  }),
  prepareForUpdate: (next, previous) => ({
    ...keepStatus(next, previous),
    spec: syncDataSources(dropDisabledFields(next.spec ?? {}, previous.spec), previous.spec),
  }),
  validate: validatePersistentVolumeClaim,
  validateUpdate: validatePersistentVolumeClaimUpdate,
  warnings: persistentVolumeClaimWarnings,
};

function prepareForStatusUpdate(next: PersistentVolumeClaim, previous: PersistentVolumeClaim): PersistentVolumeClaim {
  const kept = replaceStatus(next, previous);
  if (kept.status === undefined) return kept;
  const { currentVolumeAttributesClassName: _, modifyVolumeStatus: __, ...status } = kept.status;
  return { ...kept, status };
}

const persistentVolumeClaimColumns: readonly Column<PersistentVolumeClaim>[] = [
  nameColumn,
  column(
    "Status",
    (object) => (object.metadata?.deletionTimestamp === undefined ? (object.status?.phase ?? "") : "Terminating"),
    "Whether it has a volume.",
  ),
  column("Volume", (object) => object.spec?.volumeName ?? "", "The volume it is bound to."),
  column("Capacity", (object) => (object.spec?.volumeName ? (object.status?.capacity?.storage ?? "0") : "")),
  column("Access Modes", (object) => (object.spec?.volumeName ? accessModesText(object.status?.accessModes) : "")),
  column("StorageClass", storageClassNameOf),
  column("VolumeAttributesClass", (object) => object.spec?.volumeAttributesClassName ?? "<unset>"),
  ageColumn,
  wideColumn("VolumeMode", (object) => object.spec?.volumeMode ?? "<unset>"),
];

export const persistentVolumeClaimKind: Kind<PersistentVolumeClaim> = {
  group: "",
  version: "v1",
  kind: "PersistentVolumeClaim",
  listKind: "PersistentVolumeClaimList",
  plural: "persistentvolumeclaims",
  singular: "persistentvolumeclaim",
  shortNames: ["pvc"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    statusSubresource("PersistentVolumeClaim", {
      prepareForUpdate: prepareForStatusUpdate,
      validateUpdate: validatePersistentVolumeClaimStatusUpdate,
    }),
  ],
  storageName: "persistentvolumeclaims",
  schema: persistentVolumeClaim,
  columns: persistentVolumeClaimColumns,
  selectableFields: {},
  strategy: persistentVolumeClaimStrategy,
};
