import { containerColumns } from "../../apps/workload/columns.ts";
import { ageColumn, column, integerColumn, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatAge } from "../../columns/human-duration.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { type CronJob, cronJob } from "./schema.ts";
import { cronJobStrategy } from "./strategy.ts";

function suspendedText({ spec }: CronJob): string {
  if (spec?.suspend === undefined) return "<unset>";
  return spec.suspend ? "True" : "False";
}

function lastScheduleText({ status }: CronJob, now: number): string {
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
    column("Schedule", ({ spec }) => spec?.schedule ?? ""),
    column("Timezone", ({ spec }) => spec?.timeZone ?? "<none>"),
    { ...column("Suspend", suspendedText), type: "boolean" },
    integerColumn("Active", ({ status }) => (status?.active ?? []).length),
    column("Last Schedule", lastScheduleText),
    ageColumn,
    ...containerColumns<CronJob>((object) => object.spec?.jobTemplate.spec?.template),
    wideColumn("Selector", ({ spec }) => formatLabelSelector(spec?.jobTemplate.spec?.selector)),
  ],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: cronJobStrategy,
};
