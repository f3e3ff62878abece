import { containerColumns } from "../../apps/workload/columns.ts";
import { createPrepareForUpdate, podNameWarnings, prepareForCreate, specOf } from "../../apps/workload/strategy.ts";
import { ageColumn, column, integerColumn, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatAge } from "../../columns/human-duration.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { setJobTemplateDefaults } from "../job/defaults.ts";
import { jobWarnings } from "../job/warnings.ts";
import { type CronJob, cronJob, cronJobSpec } from "./schema.ts";
import { validateCronJob } from "./validation.ts";

const SUCCESSFUL_JOBS_KEPT = 3;
const FAILED_JOBS_KEPT = 1;

function setCronJobDefaults(object: CronJob): CronJob {
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

const cronJobStrategy: Strategy<CronJob> = {
  setDefaults: setCronJobDefaults,
  prepareForCreate,
  prepareForUpdate: createPrepareForUpdate(cronJobSpec),
  validate: validateCronJob,
  warnings: (object, previous) => [
    ...(previous === undefined ? podNameWarnings(object) : []),
    ...jobWarnings(object, previous, object.spec?.jobTemplate.spec, "spec.jobTemplate.spec"),
  ],
};

function suspended({ spec }: CronJob): string {
  if (spec?.suspend === undefined) return "<unset>";
  return spec.suspend ? "True" : "False";
}

function lastSchedule({ status }: CronJob, now: number): string {
  return status?.lastScheduleTime === undefined ? "<none>" : formatAge(status.lastScheduleTime, now);
}

export const cronJobKind: Kind<CronJob> = {
  group: "batch",
  version: "v1",
  kind: "CronJob",
  listKind: "CronJobList",
  plural: "cronjobs",
  singular: "cronjob",
  shortNames: ["cj"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("CronJob")],
  storageName: "cronjobs",
  schema: cronJob,
  columns: [
    nameColumn,
    column("Schedule", ({ spec }) => spec?.schedule ?? "", "When it makes a job."),
    column("Timezone", ({ spec }) => spec?.timeZone ?? "<none>", "Where the schedule is read; the server's when none."),
    { ...column("Suspend", suspended, "Whether it makes no jobs for now."), type: "boolean" },
    integerColumn("Active", ({ status }) => (status?.active ?? []).length, "Jobs that are running."),
    column("Last Schedule", lastSchedule, "How long ago it made its latest job."),
    ageColumn,
    ...containerColumns<CronJob>((object) => object.spec?.jobTemplate.spec?.template),
    wideColumn("Selector", ({ spec }) => formatLabelSelector(spec?.jobTemplate.spec?.selector), "Of its jobs."),
  ],
  selectableFields: {},
  strategy: cronJobStrategy,
};
