/** Conditions of jobs. */
import type { Job, JobCondition } from "../../api/batch/job/schema.ts";
import { formatTime } from "../../schema/value/time.ts";

export type JobConditionType = "Complete" | "Failed" | "FailureTarget" | "SuccessCriteriaMet" | "Suspended";

export function jobCondition(
  type: JobConditionType,
  reason: string,
  message: string,
  now: number,
  status: "True" | "False" = "True",
): JobCondition {
  const time = formatTime(now);
  return { type, status, lastProbeTime: time, lastTransitionTime: time, reason, message };
}

export function trueCondition({ status }: Job, type: JobConditionType): JobCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type && condition.status === "True");
}

export function isJobFinished(job: Job): boolean {
  return trueCondition(job, "Complete") !== undefined || trueCondition(job, "Failed") !== undefined;
}

/** Returns the same list if nothing changes. A condition that is `False` is never added. */
export function setCondition(conditions: readonly JobCondition[], next: JobCondition): readonly JobCondition[] {
  const index = conditions.findIndex(({ type }) => type === next.type);
  const found = conditions[index];
  if (found === undefined) return next.status === "False" ? conditions : [...conditions, next];
  const { status, reason, message } = found;
  if (status === next.status && reason === next.reason && message === next.message) return conditions;
  return conditions.with(index, next);
}
