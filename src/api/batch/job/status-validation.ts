/**
 * Rules for updates of a job's status. Rules about unchanged fields are skipped: an invalid status may be repaired in
 * several updates, and the controller may lag behind changes of the spec.
 */
import {
  duplicateField,
  type FieldError,
  invalidCombination,
  invalidField,
  requiredField,
  unquotedTime,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";
import { firstShared, parseIndexes } from "./indexes.ts";
import { indexesProblem } from "./policy-validation.ts";
import { type Job, type JobStatus, uncountedTerminatedPods } from "./schema.ts";

type ConditionType = "Complete" | "Failed" | "FailureTarget" | "SuccessCriteriaMet";

export function hasCondition(object: Job, type: ConditionType | "Suspended"): boolean {
  return (
    object.status?.conditions?.some((condition) => condition.type === type && condition.status === "True") === true
  );
}

function isFinished(object: Job): boolean {
  return hasCondition(object, "Complete") || hasCondition(object, "Failed");
}

function conditionsError(detail: string): FieldError {
  return invalidCombination("status.conditions", detail);
}

export function validateJobStatus(next: Job, previous: Job): readonly FieldError[] {
  const status: JobStatus = next.status ?? {};
  const change = new StatusChange(next, previous);
  return [
    ...validateNonNegativeFields(status, "status", ["active", "succeeded", "failed", "ready", "terminating"]),
    ...validateUncounted(status),
    ...validateTerminalConditions(next, change),
    ...validateTimes(next, change),
    ...validateReasons(next, change),
    ...validateFinished(next, change),
    ...validateIndexSets(next, change),
    ...validatePods(next, change),
    ...validateSuccess(next),
    ...validateHistory(next, previous),
  ];
}

/** The fields of the status that an update changes. */
class StatusChange {
  readonly #next: Job;
  readonly #previous: Job;

  constructor(next: Job, previous: Job) {
    this.#next = next;
    this.#previous = previous;
  }

  changes(...names: readonly (keyof JobStatus)[]): boolean {
    const [next, previous]: readonly JobStatus[] = [this.#next.status ?? {}, this.#previous.status ?? {}];
    return names.some((name) => !deepEqual(next?.[name], previous?.[name]));
  }

  changesCondition(...types: readonly ConditionType[]): boolean {
    return types.some((type) => hasCondition(this.#next, type) !== hasCondition(this.#previous, type));
  }

  changesFinish(): boolean {
    return isFinished(this.#next) !== isFinished(this.#previous);
  }
}

function validateUncounted({ uncountedTerminatedPods }: JobStatus): readonly FieldError[] {
  const seen = new Set<string>();
  return (["succeeded", "failed"] as const).flatMap((list) =>
    validateEach(uncountedTerminatedPods?.[list] ?? [], (uid, i) => {
      const field = `status.uncountedTerminatedPods.${list}[${i}]`;
      if (uid === "") return [invalidField(field, uid, "must not be empty")];
      if (seen.has(uid)) return [duplicateField(field, uid)];
      seen.add(uid);
      return [];
    }),
  );
}

/** Complete and Failed exclude each other, and the conditions that announce the other. */
function validateTerminalConditions(next: Job, change: StatusChange): readonly FieldError[] {
  const is = (type: ConditionType): boolean => hasCondition(next, type);
  const both = change.changesCondition("Complete", "Failed") && is("Complete") && is("Failed");
  const failing = change.changesCondition("Complete", "FailureTarget") && is("Complete") && is("FailureTarget");
  return [
    ...(both ? [conditionsError("cannot set Complete=True and Failed=true conditions")] : []),
    ...(failing ? [conditionsError("cannot set Complete=True and FailureTarget=true conditions")] : []),
  ];
}

/** SuccessCriteriaMet or FailureTarget precede Complete and Failed. */
function validateReasons(next: Job, change: StatusChange): readonly FieldError[] {
  const is = (type: ConditionType): boolean => hasCondition(next, type);
  const failed = change.changesCondition("Failed", "FailureTarget") && is("Failed") && !is("FailureTarget");
  const met = change.changesCondition("Complete", "SuccessCriteriaMet") && is("Complete") && !is("SuccessCriteriaMet");
  return [
    ...(failed ? [conditionsError("cannot set Failed=True condition without the FailureTarget=true condition")] : []),
    ...(met
      ? [conditionsError("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")]
      : []),
  ];
}

function validateSuccess(next: Job): readonly FieldError[] {
  const is = (type: ConditionType): boolean => hasCondition(next, type);
  const unmet = next.spec?.successPolicy !== undefined && is("Complete") && !is("SuccessCriteriaMet");
  const errors: FieldError[] = [];
  if (is("Failed") && is("SuccessCriteriaMet")) {
    errors.push(conditionsError("cannot set SuccessCriteriaMet=True and Failed=true conditions"));
  }
  if (is("FailureTarget") && is("SuccessCriteriaMet")) {
    errors.push(conditionsError("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"));
  }
  if (unmet) {
    errors.push(conditionsError("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"));
  }
  return errors;
}

function validateTimes(next: Job, change: StatusChange): readonly FieldError[] {
  const { startTime, completionTime } = next.status ?? {};
  const errors: FieldError[] = [];
  const at = "status.completionTime";
  const complete = hasCondition(next, "Complete");
  if (change.changes("completionTime") || change.changesCondition("Complete")) {
    if (completionTime !== undefined && !complete) {
      const detail = "cannot set completionTime when there is no Complete=True condition";
      errors.push(invalidField(at, unquotedTime(completionTime), detail));
    }
    if (completionTime === undefined && complete) {
      errors.push(requiredField(at, "completionTime is required for Complete jobs"));
    }
  }
  if (change.changes("startTime", "completionTime") && startTime !== undefined && completionTime !== undefined) {
    if (Date.parse(completionTime) < Date.parse(startTime)) {
      errors.push(invalidField(at, unquotedTime(completionTime), "completionTime cannot be set before startTime"));
    }
  }
  return errors;
}

function validateFinished(next: Job, change: StatusChange): readonly FieldError[] {
  if (!isFinished(next)) return [];
  const { active = 0, startTime, uncountedTerminatedPods: uncounted } = next.status ?? {};
  const changed = (...names: readonly (keyof JobStatus)[]): boolean =>
    change.changesFinish() || change.changes(...names);
  const left = (uncounted?.succeeded ?? []).length + (uncounted?.failed ?? []).length;
  const errors: FieldError[] = [];
  if (changed("active") && active > 0) {
    errors.push(invalidField("status.active", active, "active>0 is invalid for finished job"));
  }
  if (changed("startTime") && startTime === undefined) {
    errors.push(requiredField("status.startTime", "startTime is required for finished job"));
  }
  if (changed("uncountedTerminatedPods") && left > 0) {
    const detail = "uncountedTerminatedPods needs to be empty for finished job";
    errors.push(invalidField("status.uncountedTerminatedPods", goStruct(uncountedTerminatedPods, uncounted), detail));
  }
  return errors;
}

function validateIndexSets({ spec, status }: Job, change: StatusChange): readonly FieldError[] {
  const { completions, completionMode, backoffLimitPerIndex } = spec ?? {};
  const { completedIndexes = "", failedIndexes } = status ?? {};
  const [completedAt, failedAt] = ["status.completedIndexes", "status.failedIndexes"];
  const errors: FieldError[] = [];
  const parsing = (text: string, field: string): void => {
    const problem = completions === undefined ? undefined : indexesProblem(text, completions);
    const name = field.slice("status.".length);
    if (problem !== undefined) errors.push(invalidField(field, text, `error parsing ${name}: ${problem}`));
  };
  if (change.changes("completedIndexes")) parsing(completedIndexes, completedAt);
  if (change.changes("failedIndexes") && backoffLimitPerIndex !== undefined && failedIndexes !== undefined) {
    parsing(failedIndexes, failedAt);
  }
  if (change.changes("completedIndexes") && completedIndexes !== "" && completionMode !== "Indexed") {
    const detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
    errors.push(invalidField(completedAt, completedIndexes, detail));
  }
  if (change.changes("failedIndexes") && backoffLimitPerIndex === undefined && failedIndexes !== undefined) {
    const detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
    errors.push(invalidField(failedAt, failedIndexes, detail));
  }
  if (change.changes("completedIndexes", "failedIndexes") && completions !== undefined && failedIndexes !== undefined) {
    const shared = overlap(completedIndexes, failedIndexes, completions);
    if (shared !== undefined) {
      const detail = `failedIndexes and completedIndexes overlap at index: ${shared}`;
      errors.push(invalidField(failedAt, failedIndexes, detail));
    }
  }
  return errors;
}

/** Other rules report invalid sets of indexes. */
function overlap(completed: string, failed: string, completions: number): number | undefined {
  const unreadable = [completed, failed].some((text) => indexesProblem(text, completions) !== undefined);
  return unreadable ? undefined : firstShared(parseIndexes(failed, completions), parseIndexes(completed, completions));
}

function validatePods(next: Job, change: StatusChange): readonly FieldError[] {
  const { terminating = 0, ready, active = 0 } = next.status ?? {};
  const errors: FieldError[] = [];
  if (isFinished(next) && terminating > 0 && (change.changesFinish() || change.changes("terminating"))) {
    errors.push(invalidField("status.terminating", terminating, "terminating>0 is invalid for finished job"));
  }
  if (ready !== undefined && ready > active && change.changes("ready", "active")) {
    errors.push(invalidField("status.ready", ready, "cannot set more ready pods than active"));
  }
  return errors;
}

/** Terminal conditions must not be removed. */
function validateHistory(next: Job, previous: Job): readonly FieldError[] {
  const errors: FieldError[] = [];
  const [status, old]: readonly [JobStatus, JobStatus] = [next.status ?? {}, previous.status ?? {}];
  for (const type of ["Failed", "Complete", "FailureTarget"] as const) {
    if (hasCondition(previous, type) && !hasCondition(next, type)) {
      errors.push(conditionsError(`cannot disable the terminal ${type}=True condition`));
    }
  }
  const elastic = next.spec?.completionMode === "Indexed" && next.spec.completions === next.spec.parallelism;
  for (const name of ["failed", "succeeded"] as const) {
    const fewer = (status[name] ?? 0) < (old[name] ?? 0);
    // Scaling down an indexed job removes succeeded indexes.
    if (!fewer || (name === "succeeded" && elastic)) continue;
    errors.push(invalidField(`status.${name}`, status[name] ?? 0, `cannot decrease the ${name} counter`));
  }
  const moved = old.completionTime !== undefined && status.completionTime !== old.completionTime;
  if (moved && status.completionTime !== undefined) {
    errors.push(
      invalidField("status.completionTime", unquotedTime(status.completionTime), "completionTime cannot be mutated"),
    );
  }
  // A job that is resumed starts again.
  const isResumed = hasCondition(previous, "Suspended") && !hasCondition(next, "Suspended");
  const mayRestart = isResumed || next.spec?.suspend === true;
  if (old.startTime !== undefined && old.startTime !== status.startTime && !mayRestart) {
    errors.push(requiredField("status.startTime", "startTime cannot be removed for unsuspended job"));
  }
  if (hasCondition(previous, "SuccessCriteriaMet") && !hasCondition(next, "SuccessCriteriaMet")) {
    errors.push(conditionsError("cannot disable the SuccessCriteriaMet=True condition"));
  }
  const late = hasCondition(previous, "Complete") && !hasCondition(previous, "SuccessCriteriaMet");
  if (late && hasCondition(next, "SuccessCriteriaMet")) {
    errors.push(conditionsError("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"));
  }
  return errors;
}
