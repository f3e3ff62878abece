import {
  boolean,
  int32,
  int64,
  list,
  named,
  object,
  oneOf,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectReference } from "../../core/references/object-reference.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { jobSpec } from "../job/schema.ts";

export const jobTemplateSpec = object("batch/v1.JobTemplateSpec", {
  metadata: optional(1, objectMeta),
  spec: optional(2, jobSpec),
});
export type JobTemplateSpec = Infer<typeof jobTemplateSpec>;

export const cronJobSpec = object("batch/v1.CronJobSpec", {
  schedule: required(1, string),
  timeZone: pointer(8, string),
  startingDeadlineSeconds: pointer(2, int64),
  concurrencyPolicy: optional(3, named("v1.ConcurrencyPolicy", oneOf("Allow", "Forbid", "Replace"))),
  suspend: pointer(4, boolean),
  jobTemplate: required(5, jobTemplateSpec),
  successfulJobsHistoryLimit: pointer(6, int32),
  failedJobsHistoryLimit: pointer(7, int32),
});
export type CronJobSpec = Infer<typeof cronJobSpec>;

export const cronJobStatus = object("batch/v1.CronJobStatus", {
  active: optional(1, list(objectReference)),
  lastScheduleTime: pointer(4, time),
  lastSuccessfulTime: pointer(5, time),
});
export type CronJobStatus = Infer<typeof cronJobStatus>;

export const cronJob = object("batch/v1.CronJob", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, cronJobSpec),
  status: optional(3, cronJobStatus),
});
export type CronJob = Infer<typeof cronJob>;
