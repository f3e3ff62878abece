import { createPrepareForUpdate, podNameWarnings, prepareForCreate } from "../../apps/workload/strategy.ts";
import type { Strategy } from "../../kind.ts";
import { setJobDefaults, setLabelsFromTemplate } from "./defaults.ts";
import { type Job, jobSpec } from "./schema.ts";
import { generateSelector } from "./selector.ts";
import { validateJobUpdate } from "./update-validation.ts";
import { validateJob } from "./validation.ts";
import { jobWarnings } from "./warnings.ts";

const PODS_STAY =
  "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

export const jobStrategy: Strategy<Job> = {
  setDefaults: setJobDefaults,
  prepareForCreate: (object) => setLabelsFromTemplate(generateSelector(prepareForCreate(object))),
  prepareForUpdate: createPrepareForUpdate(jobSpec),
  validate: validateJob,
  validateUpdate: validateJobUpdate,
  warnings: (object, previous) => [
    ...(previous === undefined ? podNameWarnings(object) : []),
    ...jobWarnings(object, previous, object.spec, "spec"),
  ],
  orphansDependentsByDefault: true,
  deletionWarning: PODS_STAY,
};
