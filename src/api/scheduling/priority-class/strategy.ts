import type { Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import type { PriorityClass } from "./schema.ts";
import { isSystemClass } from "./system-classes.ts";
import { validatePriorityClass, validatePriorityClassUpdate } from "./validation.ts";

export const priorityClassStrategy: Strategy<PriorityClass> = {
  setDefaults: (object) => ({ ...object, preemptionPolicy: object.preemptionPolicy ?? "PreemptLowerPriority" }),
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, false),
  validate: validatePriorityClass,
  validateUpdate: validatePriorityClassUpdate,
  validateDelete: (object) =>
    isSystemClass(object) ? "this is a system priority class and cannot be deleted" : undefined,
};
