import { specOf } from "../../apps/workload/strategy.ts";
import { setJobTemplateDefaults } from "../job/defaults.ts";
import type { CronJob } from "./schema.ts";

const SUCCESSFUL_JOBS_KEPT = 3;

const FAILED_JOBS_KEPT = 1;

export function setCronJobDefaults(object: CronJob): CronJob {
  const spec = specOf(object);
  return {
    ...object,
    spec: {
      schedule: "",
      ...spec,
      concurrencyPolicy: spec.concurrencyPolicy || "Allow",
      suspend: spec.suspend ?? false,
      jobTemplate: { ...spec.jobTemplate, spec: setJobTemplateDefaults(spec.jobTemplate?.spec ?? {}) },
      successfulJobsHistoryLimit: spec.successfulJobsHistoryLimit ?? SUCCESSFUL_JOBS_KEPT,
      failedJobsHistoryLimit: spec.failedJobsHistoryLimit ?? FAILED_JOBS_KEPT,
    },
  };
}
