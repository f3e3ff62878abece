/** Rules for cron jobs. */
import { type FieldError, invalidField, notSupported, requiredField } from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";
import { validateJobSpec } from "../job/validation.ts";
import { CronError, parseCronSchedule } from "./schedule.ts";
import type { CronJob, CronJobSpec } from "./schema.ts";
import { isTimeZone, isZoneDirectory } from "./time-zone.ts";

/** Names of jobs append a timestamp of eleven characters. */
const NAME_MAX = 52;

export function validateCronJob({ metadata, spec }: CronJob, previous: CronJob | undefined): readonly FieldError[] {
  if (spec === undefined) return [];
  const name = metadata?.name ?? "";
  const long = previous === undefined && Buffer.byteLength(name) > NAME_MAX;
  return [
    ...validateSchedule(spec, previous?.spec),
    ...validateNonNegativeFields(spec, "spec", ["startingDeadlineSeconds"]),
    ...(previous !== undefined && previous.spec?.timeZone === spec.timeZone ? [] : validateTimeZone(spec.timeZone)),
    ...validateJobTemplate(spec, previous?.spec),
    ...validateNonNegativeFields(spec, "spec", ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"]),
    ...(long ? [invalidField("metadata.name", name, "must be no more than 52 characters")] : []),
  ];
}

function validateSchedule({ schedule, timeZone }: CronJobSpec, previous?: CronJobSpec): readonly FieldError[] {
  const field = "spec.schedule";
  if (schedule === "") return [requiredField(field)];
  const problem = scheduleProblem(schedule);
  const errors = problem === undefined ? [] : [invalidField(field, schedule, problem)];
  if (!schedule.includes("TZ")) return errors;
  if (previous?.schedule.includes("TZ") !== true) {
    errors.push(invalidField(field, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
  } else if (timeZone !== undefined) {
    errors.push(invalidField(field, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"));
  }
  return errors;
}

function scheduleProblem(schedule: string): string | undefined {
  try {
    parseCronSchedule(schedule);
    return undefined;
  } catch (error) {
    if (error instanceof CronError) return error.message;
    throw error;
  }
}

const LOCAL = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";

function validateTimeZone(zone: string | undefined): readonly FieldError[] {
  const field = "spec.timeZone";
  if (zone === undefined) return [];
  if (zone === "") return [invalidField(field, zone, "timeZone must be nil or non-empty string")];
  const unknown = invalidField(field, zone, `unknown time zone ${zone}`);
  // Go resolves the name in this spelling only.
  if (zone.toLowerCase() === "local") return [invalidField(field, zone, LOCAL), ...(zone === "Local" ? [] : [unknown])];
  if (zone.includes("..") && hasZoneCharacters(zone)) return [invalidField(field, zone, "time: invalid location name")];
  if (isZoneDirectory(zone)) return [invalidField(field, zone, "is a directory")];
  return isTimeZone(zone) ? [] : [unknown];
}

/** Whether each part of the name can be that of a time zone. */
function hasZoneCharacters(zone: string): boolean {
  const isPart = (part: string): boolean => /^(?!-|\.{1,2}$)[\w.+-]{1,14}$/.test(part);
  return zone.split("/").every(isPart);
}

/** The selectors of the jobs are generated when they are created. */
function validateJobTemplate({ jobTemplate }: CronJobSpec, previous: CronJobSpec | undefined): readonly FieldError[] {
  const { spec } = jobTemplate;
  const path = "spec.jobTemplate.spec";
  if (spec === undefined) return [];
  return [
    ...validateJobSpec(spec, path, previous?.jobTemplate.spec),
    ...(spec.selector === undefined
      ? []
      : [
          invalidField(`${path}.selector`, goStruct(labelSelector, spec.selector), "`selector` will be auto-generated"),
        ]),
    ...(spec.manualSelector === true ? [notSupported(`${path}.manualSelector`, true, ["nil", "false"])] : []),
  ];
}
