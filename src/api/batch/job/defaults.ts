import { setTemplateDefaults, specOf } from "../../apps/workload/strategy.ts";
import type { Job, JobSpec } from "./schema.ts";

const BACKOFF_LIMIT = 6;
/** No limit for the job where each index has one. */
const NO_LIMIT = 2_147_483_647;

export function setJobDefaults(object: Job): Job {
  const spec = specOf(object);
  const single = spec.completions === undefined && spec.parallelism === undefined;
  return {
    ...setLabelsFromTemplate(object),
    spec: {
      ...setJobTemplateDefaults(spec),
      ...(single ? { completions: 1 } : {}),
      parallelism: spec.parallelism ?? 1,
      backoffLimit: spec.backoffLimit ?? (spec.backoffLimitPerIndex === undefined ? BACKOFF_LIMIT : NO_LIMIT),
      completionMode: spec.completionMode ?? "NonIndexed",
      suspend: spec.suspend ?? false,
      podReplacementPolicy:
        spec.podReplacementPolicy ?? (spec.podFailurePolicy === undefined ? "TerminatingOrFailed" : "Failed"),
      manualSelector: spec.manualSelector ?? false,
    },
  };
}

/** A job without labels gets those of its template. */
export function setLabelsFromTemplate(object: Job): Job {
  const labels = object.spec?.template.metadata?.labels;
  if (labels === undefined || Object.keys(object.metadata?.labels ?? {}).length > 0) return object;
  return { ...object, metadata: { ...object.metadata, labels } };
}

/** Defaults of jobs and of the job templates of cron jobs. */
export function setJobTemplateDefaults(spec: Partial<JobSpec>): JobSpec {
  const policy = spec.podFailurePolicy;
  return {
    ...spec,
    ...(policy === undefined ? {} : { podFailurePolicy: { ...policy, rules: policy.rules.map(setRuleDefaults) } }),
    template: setTemplateDefaults(spec.template),
  };
}

type Rule = NonNullable<JobSpec["podFailurePolicy"]>["rules"][number];

function setRuleDefaults(rule: Rule): Rule {
  if (rule.onPodConditions === undefined) return rule;
  const onPodConditions = rule.onPodConditions.map((pattern) => ({ ...pattern, status: pattern.status || "True" }));
  return { ...rule, onPodConditions };
}
