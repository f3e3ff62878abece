import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { updateGeneration } from "../../strategy.ts";
import { setCSIDriverDefaults } from "./defaults.ts";
import type { CSIDriver } from "./schema.ts";
import { validateCSIDriverSpec, validateCSIDriverUpdate } from "./validation.ts";

export const csiDriverStrategy: Strategy<CSIDriver> = {
  allowUnconditionalUpdate: false,
  setDefaults: setCSIDriverDefaults,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.spec, previous.spec)),
  validate: ({ spec }) => validateCSIDriverSpec(spec),
  validateUpdate: validateCSIDriverUpdate,
};
