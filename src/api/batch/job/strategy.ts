import { createPrepareForUpdate, podNameWarnings, prepareForCreate } from "../../apps/workload/strategy.ts";
import type { Strategy } from "../../kind.ts";
import { validateLabels } from "../../meta/validation/object-meta.ts";
import { setJobDefaults, setLabelsFromTemplate } from "./defaults.ts";
import { type Job, jobSpec } from "./schema.ts";
import { generateSelector } from "./selector.ts";
import { validateJobUpdate } from "./update-validation.ts";
import { validateJob } from "./validation.ts";
import { jobWarnings } from "./warnings.ts";

const PODS_STAY =
  "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/**
 * Adds the generated labels of the template to those that the job got from it, which Kubernetes holds in the same map.
 * A job without any gets them when it is stored, after its validation.
 */
function labelAsTemplate(job: Job, sent: Job): Job {
  const labels = job.spec?.template.metadata?.labels;
  const own = sent.metadata?.labels;
  if (own !== undefined && own === sent.spec?.template.metadata?.labels) {
    return { ...job, metadata: { ...job.metadata, labels } };
  }
  return validateLabels(labels).length > 0 ? job : setLabelsFromTemplate(job);
}

export const jobStrategy: Strategy<Job> = {
  setDefaults: setJobDefaults,
  prepareForCreate: (object) => labelAsTemplate(generateSelector(prepareForCreate(object)), object),
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
