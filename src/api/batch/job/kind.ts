import { goQuote } from "../../../schema/value/go-quote.ts";
import { containerColumns } from "../../apps/workload/columns.ts";
import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { completionsOf, durationOf, statusOf } from "./columns.ts";
import { type Job, job } from "./schema.ts";
import { validateJobStatus } from "./status-validation.ts";
import { jobStrategy } from "./strategy.ts";

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
    column("Status", statusOf),
    column("Completions", completionsOf),
    column("Duration", durationOf),
    ageColumn,
    ...containerColumns<Job>((object) => object.spec?.template),
    wideColumn("Selector", (object) => formatLabelSelector(object.spec?.selector)),
  ],
  selectableFields: { "status.successful": (object) => String(object.status?.succeeded ?? 0) },
  unsupportedFieldMessage: (field) => `field label ${goQuote(field)} not supported for Job`,
  updateChecks: ["metadata", "spec", "metadataUpdate"],
  strategy: jobStrategy,
};
