import type { Strategy } from "../../kind.ts";
import { keepStatus, replaceStatus } from "../../strategy.ts";
import { setPersistentVolumeDefaults } from "./defaults.ts";
import { addProtectionFinalizer } from "./in-use-protection.ts";
import type { PersistentVolume } from "./schema.ts";
import { validatePersistentVolume, validatePersistentVolumeUpdate } from "./validation.ts";
import { persistentVolumeWarnings } from "./warnings.ts";

/** Drops the field of a feature that is off by default, unless the stored volume has it. */
function dropDisabledFields(object: PersistentVolume, previous?: PersistentVolume): PersistentVolume {
  if (object.spec?.volumeAttributesClassName === undefined) return object;
  if (previous?.spec?.volumeAttributesClassName !== undefined) return object;
  const { volumeAttributesClassName: _, ...spec } = object.spec;
  return { ...object, spec };
}

/** Sets `lastPhaseTransitionTime` when the phase changes, unless the client sets it. */
export function prepareForStatusUpdate(
  next: PersistentVolume,
  previous: PersistentVolume,
  now: string,
): PersistentVolume {
  const kept = replaceStatus(next, previous);
  const [status, before] = [kept.status ?? {}, previous.status ?? {}];
  const since =
    status.phase === before.phase
      ? (status.lastPhaseTransitionTime ?? before.lastPhaseTransitionTime)
      : phaseTransitionTime(status, before, now);
  if (since === undefined) return kept;
  return { ...kept, status: { ...status, lastPhaseTransitionTime: since } };
}

type Status = NonNullable<PersistentVolume["status"]>;

function phaseTransitionTime(status: Status, before: Status, now: string): string {
  const set = status.lastPhaseTransitionTime;
  return set === undefined || set === before.lastPhaseTransitionTime ? now : set;
}

export const persistentVolumeStrategy: Strategy<PersistentVolume> = {
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
