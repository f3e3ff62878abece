import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type Job, job } from "./job.ts";

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
  subresources: [statusSubresource("Job")],
  storageName: "jobs",
  schema: job,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
