import { humanDuration } from "../../columns/human-duration.ts";
import type { Job } from "./schema.ts";
import { hasCondition } from "./status-validation.ts";

export function statusOf(object: Job): string {
  for (const type of ["Complete", "Failed"] as const) if (hasCondition(object, type)) return type;
  if (object.metadata?.deletionTimestamp !== undefined) return "Terminating";
  const condition = (["Suspended", "FailureTarget"] as const).find((type) => hasCondition(object, type));
  return condition ?? "Running";
}

/** Without `completions` the first pod that succeeds completes the job. */
export function completionsOf({ spec, status }: Job): string {
  const { completions, parallelism = 0 } = spec ?? {};
  const succeeded = status?.succeeded ?? 0;
  if (completions !== undefined) return `${succeeded}/${completions}`;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

export function durationOf({ status }: Job, now: number): string {
  const { startTime, completionTime } = status ?? {};
  if (startTime === undefined) return "";
  return humanDuration((completionTime === undefined ? now : Date.parse(completionTime)) - Date.parse(startTime));
}
