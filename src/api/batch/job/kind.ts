import { containerColumns } from "../../apps/workload/columns.ts";
import { createPrepareForUpdate, podNameWarnings, prepareForCreate } from "../../apps/workload/strategy.ts";
import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import { humanDuration } from "../../columns/human-duration.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { labelledAsTemplate, setJobDefaults } from "./defaults.ts";
import { type Job, job, jobSpec } from "./schema.ts";
import { generateSelector } from "./selector.ts";
import { hasCondition, validateJobStatus } from "./status-validation.ts";
import { validateJobUpdate } from "./update-validation.ts";
import { validateJob } from "./validation.ts";
import { jobWarnings } from "./warnings.ts";

const PODS_STAY =
  "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

const jobStrategy: Strategy<Job> = {
  setDefaults: setJobDefaults,
  prepareForCreate: (object) => labelledAsTemplate(generateSelector(prepareForCreate(object))),
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

function statusOf(object: Job): string {
  for (const type of ["Complete", "Failed"] as const) if (hasCondition(object, type)) return type;
  if (object.metadata?.deletionTimestamp !== undefined) return "Terminating";
  const said = (["Suspended", "FailureTarget"] as const).find((type) => hasCondition(object, type));
  return said ?? "Running";
}

/** Without a number of completions the first pod that succeeds ends the job. */
function completionsOf({ spec, status }: Job): string {
  const { completions, parallelism = 0 } = spec ?? {};
  const succeeded = status?.succeeded ?? 0;
  if (completions !== undefined) return `${succeeded}/${completions}`;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function durationOf({ status }: Job, now: number): string {
  const { startTime, completionTime } = status ?? {};
  if (startTime === undefined) return "";
  return humanDuration((completionTime === undefined ? now : Date.parse(completionTime)) - Date.parse(startTime));
}

export const jobKind: Kind<Job> = {
  group: "batch",
  version: "v1",
  kind: "Job",
  listKind: "JobList",
  plural: "jobs",
  singular: "job",
  shortNames: [],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("Job", { validateUpdate: validateJobStatus })],
  storageName: "jobs",
  schema: job,
  columns: [
    nameColumn,
    column("Status", statusOf, "Where the job is, in one word."),
    column("Completions", completionsOf, "Pods that succeeded, of those wanted."),
    column("Duration", durationOf, "How long it has been running, or ran."),
    ageColumn,
    ...containerColumns<Job>((object) => object.spec?.template),
    wideColumn("Selector", (object) => formatLabelSelector(object.spec?.selector), "Which pods belong to it."),
  ],
  selectableFields: { "status.successful": (object) => String(object.status?.succeeded ?? 0) },
  unsupportedFieldMessage: (field) => `field label ${JSON.stringify(field)} not supported for Job`,
  strategy: jobStrategy,
};
