import { createPrepareForUpdate, podNameWarnings, prepareForCreate } from "../../apps/workload/strategy.ts";
import type { Strategy } from "../../kind.ts";
import { jobWarnings } from "../job/warnings.ts";
import { setCronJobDefaults } from "./defaults.ts";
import { type CronJob, cronJobSpec } from "./schema.ts";
import { validateCronJob } from "./validation.ts";

export const cronJobStrategy: Strategy<CronJob> = {
  setDefaults: setCronJobDefaults,
  prepareForCreate,
  prepareForUpdate: createPrepareForUpdate(cronJobSpec),
  validate: validateCronJob,
  warnings: (object, previous) => [
    ...(previous === undefined ? podNameWarnings(object) : []),
    ...jobWarnings(object, previous, object.spec?.jobTemplate.spec, "spec.jobTemplate.spec"),
  ],
};
