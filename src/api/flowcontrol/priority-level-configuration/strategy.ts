import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { dropStatus, keepStatus, setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { setPriorityLevelConfigurationDefaults } from "./defaults.ts";
import type { PriorityLevelConfiguration } from "./schema.ts";
import { validatePriorityLevel } from "./validation.ts";

export const priorityLevelConfigurationStrategy: Strategy<PriorityLevelConfiguration> = {
  setDefaults: setPriorityLevelConfigurationDefaults,
  prepareForCreate: (object) => setFirstGeneration(dropStatus(object)),
  prepareForUpdate: (next, previous) =>
    updateGeneration(keepStatus(next, previous), previous, !deepEqual(next.spec, previous.spec)),
  validate: validatePriorityLevel,
};
