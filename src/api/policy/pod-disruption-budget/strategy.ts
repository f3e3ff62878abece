import { createPrepareForUpdate, prepareForCreate } from "../../apps/workload/strategy.ts";
import type { Strategy } from "../../kind.ts";
import { type PodDisruptionBudget, podDisruptionBudgetSpec } from "./schema.ts";
import { validatePodDisruptionBudgetSpec } from "./validation.ts";

export const podDisruptionBudgetStrategy: Strategy<PodDisruptionBudget> = {
  prepareForCreate,
  prepareForUpdate: createPrepareForUpdate(podDisruptionBudgetSpec),
  validate: ({ spec }, previous) => validatePodDisruptionBudgetSpec(spec ?? {}, previous?.spec),
  allowUnconditionalUpdate: false,
};
