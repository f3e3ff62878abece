import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type CronJob, cronJob } from "./cron-job.ts";

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
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
