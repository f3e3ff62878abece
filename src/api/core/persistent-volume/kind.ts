import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import { allVerbs, type Column, type Kind, type Strategy } from "../../kind.ts";
import { keepStatus, replaceStatus, statusSubresource } from "../../strategy.ts";
import { accessModesText } from "./access-modes.ts";
import { setPersistentVolumeDefaults } from "./defaults.ts";
import { addProtectionFinalizer } from "./in-use-protection.ts";
import { type PersistentVolume, persistentVolume } from "./schema.ts";
import { storageClassNameOf } from "./storage-class-name.ts";
import { validatePersistentVolume, validatePersistentVolumeUpdate } from "./validation.ts";
import { persistentVolumeWarnings } from "./warnings.ts";

/** A member whose feature is off unless asked for goes, unless the volume had it. */
function dropDisabledFields(object: PersistentVolume, previous?: PersistentVolume): PersistentVolume {
  if (object.spec?.volumeAttributesClassName === undefined) return object;
  if (previous?.spec?.volumeAttributesClassName !== undefined) return object;
  const { volumeAttributesClassName: _, ...spec } = object.spec;
  return { ...object, spec };
}

/** The server notes when the phase changed, unless the writer says when. */
function prepareForStatusUpdate(next: PersistentVolume, previous: PersistentVolume, now: string): PersistentVolume {
  const kept = replaceStatus(next, previous);
  const [is, was] = [kept.status ?? {}, previous.status ?? {}];
  const since =
    is.phase === was.phase
      ? (is.lastPhaseTransitionTime ?? was.lastPhaseTransitionTime)
      : phaseTransitionTime(is, was, now);
  if (since === undefined) return kept;
  return { ...kept, status: { ...is, lastPhaseTransitionTime: since } };
}

type Status = NonNullable<PersistentVolume["status"]>;

function phaseTransitionTime(is: Status, was: Status, now: string): string {
  const said = is.lastPhaseTransitionTime;
  return said === undefined || said === was.lastPhaseTransitionTime ? now : said;
}

const persistentVolumeStrategy: Strategy<PersistentVolume> = {
  setDefaults: setPersistentVolumeDefaults,
  prepareForCreate: (object, now) => ({
    ...addProtectionFinalizer(dropDisabledFields(object), "kubernetes.io/pv-protection"),
    status: { phase: "Pending", lastPhaseTransitionTime: now },
  }),
  prepareForUpdate: (next, previous) => keepStatus(dropDisabledFields(next, previous), previous),
  validate: validatePersistentVolume,
  validateUpdate: validatePersistentVolumeUpdate,
  warnings: persistentVolumeWarnings,
};

function claimOf({ spec }: PersistentVolume): string {
  const claim = spec?.claimRef;
  return claim === undefined ? "" : `${claim.namespace ?? ""}/${claim.name ?? ""}`;
}

const persistentVolumeColumns: readonly Column<PersistentVolume>[] = [
  nameColumn,
  column("Capacity", (object) => object.spec?.capacity?.storage ?? "0"),
  column("Access Modes", (object) => accessModesText(object.spec?.accessModes)),
  column("Reclaim Policy", (object) => object.spec?.persistentVolumeReclaimPolicy ?? ""),
  column("Status", (object) =>
    object.metadata?.deletionTimestamp === undefined ? (object.status?.phase ?? "") : "Terminating",
  ),
  column("Claim", claimOf, "The claim it is bound to."),
  column("StorageClass", storageClassNameOf),
  column("VolumeAttributesClass", (object) => object.spec?.volumeAttributesClassName ?? "<unset>"),
  column("Reason", (object) => object.status?.reason ?? "", "Why it is in this state."),
  ageColumn,
  wideColumn("VolumeMode", (object) => object.spec?.volumeMode ?? "<unset>"),
];

export const persistentVolumeKind: Kind<PersistentVolume> = {
  group: "",
  version: "v1",
  kind: "PersistentVolume",
  listKind: "PersistentVolumeList",
  plural: "persistentvolumes",
  singular: "persistentvolume",
  shortNames: ["pv"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("PersistentVolume", { prepareForUpdate: prepareForStatusUpdate })],
  storageName: "persistentvolumes",
  schema: persistentVolume,
  columns: persistentVolumeColumns,
  selectableFields: {},
  strategy: persistentVolumeStrategy,
};
