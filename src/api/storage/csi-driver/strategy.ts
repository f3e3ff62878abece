import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { updateGeneration } from "../../strategy.ts";
import { setCSIDriverDefaults } from "./defaults.ts";
import type { CSIDriver } from "./schema.ts";
import { validateCSIDriverSpec, validateCSIDriverUpdate } from "./validation.ts";

/** Drops the field of a feature that is off by default, unless the stored driver has it. */
function dropDisabledFields(object: CSIDriver, previous?: CSIDriver): CSIDriver {
  const { nodeAllocatableUpdatePeriodSeconds: seconds, ...spec } = object.spec;
  if (seconds === undefined || previous?.spec.nodeAllocatableUpdatePeriodSeconds !== undefined) return object;
  return { ...object, spec };
}

export const csiDriverStrategy: Strategy<CSIDriver> = {
  allowUnconditionalUpdate: false,
  setDefaults: setCSIDriverDefaults,
  prepareForCreate: (object) => dropDisabledFields(object),
  prepareForUpdate: (next, previous) => {
    const kept = dropDisabledFields(next, previous);
    return updateGeneration(kept, previous, !deepEqual(kept.spec, previous.spec));
  },
  validate: ({ spec }) => validateCSIDriverSpec(spec),
  validateUpdate: validateCSIDriverUpdate,
};
