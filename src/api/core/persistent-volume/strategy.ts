import type { Strategy } from "../../kind.ts";
import { keepStatus, replaceStatus } from "../../strategy.ts";
import { setPersistentVolumeDefaults } from "./defaults.ts";
import { addProtectionFinalizer } from "./in-use-protection.ts";
import type { PersistentVolume } from "./schema.ts";
import { validatePersistentVolume, validatePersistentVolumeUpdate } from "./validation.ts";
import { persistentVolumeWarnings } from "./warnings.ts";

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
    ...addProtectionFinalizer(object, "kubernetes.io/pv-protection"),
    status: { phase: "Pending", lastPhaseTransitionTime: now },
  }),
  prepareForUpdate: keepStatus,
  validate: validatePersistentVolume,
  validateUpdate: validatePersistentVolumeUpdate,
  warnings: persistentVolumeWarnings,
};
