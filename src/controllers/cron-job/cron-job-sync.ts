/** One sync of a cron job: removes old jobs, updates the list of active ones, and starts the run that is due. */
import { cronJobKind } from "../../api/batch/cron-job/kind.ts";
import { CronError, type CronSchedule, parseCronSchedule } from "../../api/batch/cron-job/schedule.ts";
import type { CronJob, CronJobSpec, CronJobStatus } from "../../api/batch/cron-job/schema.ts";
import { isTimeZone } from "../../api/batch/cron-job/time-zone.ts";
import { jobKind } from "../../api/batch/job/kind.ts";
import type { Job } from "../../api/batch/job/schema.ts";
import type { Client } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events/event-recorder.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { Histogram } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { statusCodeOf } from "../api-errors.ts";
import { isJobFinished, trueCondition } from "../job/job-conditions.ts";
import { controllerOf, controllerReference, objectReference } from "../workload/object-keys.ts";
import { isNamespaceTerminating, messageOf } from "../workload/pod-control.ts";
import { dueRun, NoRunError, type RunTimes, untilNextRun } from "./missed-runs.ts";
import { formatInZone } from "./zoned-time.ts";

const SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp";
const MINUTE_MS = 60_000;
/** Cron jobs of old versions may have a zone in their schedule. */
const ZONE = /^(?:CRON_)?TZ=(\S*) +/;

export interface CronJobSyncDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly recorder: EventRecorder;
  /** Seconds from the time of a run to the creation of its job. */
  readonly skew: Histogram;
  readonly signal: AbortSignal;
}

type Active = NonNullable<CronJobStatus["active"]>;

interface CronJobSync {
  cronJob: CronJob;
  readonly spec: CronJobSpec;
  active: Active;
  lastScheduleTime: string | undefined;
  lastSuccessfulTime: string | undefined;
  isChanged: boolean;
}

/** Resolves with the milliseconds until the next run; undefined if there is none before the next change. */
export async function syncCronJob(
  cronJob: CronJob,
  jobs: readonly Job[],
  deps: CronJobSyncDeps,
): Promise<number | undefined> {
  const { spec, status } = cronJob;
  if (spec === undefined) return undefined;
  const { active = [], lastScheduleTime, lastSuccessfulTime } = status ?? {};
  const sync: CronJobSync = { cronJob, spec, active, lastScheduleTime, lastSuccessfulTime, isChanged: false };
  let failure: unknown;
  let next: number | undefined;
  try {
    await removeOldJobs(sync, jobs, deps);
    await observeJobs(sync, jobs, deps);
    await dropMissingJobs(sync, jobs, deps);
    next = await startDueRun(sync, deps);
  } catch (error) {
    failure = error;
  }
  if (sync.isChanged) {
    const { active, lastScheduleTime, lastSuccessfulTime } = sync;
    const status = { active, lastScheduleTime, lastSuccessfulTime };
    await deps.client.updateStatus(cronJobKind, { ...sync.cronJob, status }, deps.signal);
  }
  if (failure !== undefined) throw failure;
  return next;
}

async function removeOldJobs(sync: CronJobSync, jobs: readonly Job[], deps: CronJobSyncDeps): Promise<void> {
  const { failedJobsHistoryLimit, successfulJobsHistoryLimit } = sync.spec;
  const failed = jobs.filter((job) => trueCondition(job, "Failed") !== undefined);
  const successful = jobs.filter((job) => trueCondition(job, "Complete") !== undefined);
  await removeOldest(sync, successful, successfulJobsHistoryLimit, deps);
  await removeOldest(sync, failed, failedJobsHistoryLimit, deps);
}

async function removeOldest(
  sync: CronJobSync,
  jobs: readonly Job[],
  limit: number | undefined,
  deps: CronJobSyncDeps,
): Promise<void> {
  if (limit === undefined || jobs.length <= limit) return;
  const sorted = jobs.toSorted((a, b) => (startOrder(a) < startOrder(b) ? -1 : 1));
  for (const job of sorted.slice(0, jobs.length - limit)) await deleteJob(sync, job, deps);
}

/** Jobs that have not started come last. */
function startOrder({ metadata, status }: Job): string {
  return `${status?.startTime ?? "~"} ${metadata?.name}`;
}

async function deleteJob(
  sync: CronJobSync,
  { metadata }: Job,
  { client, recorder, signal }: CronJobSyncDeps,
): Promise<boolean> {
  const { name = "", namespace, uid } = metadata ?? {};
  try {
    await client.delete(jobKind, { name, namespace }, { propagationPolicy: "Background" }, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    recorder.record(objectReference(sync.cronJob), "Warning", "FailedDelete", `Deleted job: ${messageOf(error)}`);
    return false;
  }
  sync.active = sync.active.filter((reference) => reference.uid !== uid);
  sync.isChanged = true;
  recorder.record(objectReference(sync.cronJob), "Normal", "SuccessfulDelete", `Deleted job ${name}`);
  return true;
}

/** Removes finished jobs from the active ones. */
async function observeJobs(sync: CronJobSync, jobs: readonly Job[], deps: CronJobSyncDeps): Promise<void> {
  const { recorder } = deps;
  const about = objectReference(sync.cronJob);
  for (const job of jobs) {
    const { name, uid = "" } = job.metadata ?? {};
    const isActive = sync.active.some((reference) => reference.uid === uid);
    const isFinished = isJobFinished(job);
    const isComplete = trueCondition(job, "Complete") !== undefined;
    if (!isActive && !isFinished) {
      if (await adoptNewerStatus(sync, uid, deps)) continue;
      const message = `Saw a job that the controller did not create or forgot: ${name}`;
      recorder.record(about, "Warning", "UnexpectedJob", message);
    } else if (isActive && isFinished) {
      sync.active = sync.active.filter((reference) => reference.uid !== uid);
      sync.isChanged = true;
      const condition = isComplete ? "Complete" : "Failed";
      recorder.record(about, "Normal", "SawCompletedJob", `Saw completed job: ${name}, condition: ${condition}`);
    }
    const completedAt = isComplete ? job.status?.completionTime : undefined;
    if (completedAt !== undefined && (sync.lastSuccessfulTime === undefined || completedAt > sync.lastSuccessfulTime)) {
      sync.lastSuccessfulTime = completedAt;
      sync.isChanged = true;
    }
  }
}

/** The informer may be behind the write that added the job. Returns whether the server's status lists it. */
async function adoptNewerStatus(sync: CronJobSync, uid: string, { client, signal }: CronJobSyncDeps): Promise<boolean> {
  const { name = "", namespace } = sync.cronJob.metadata ?? {};
  const newer = await client.get(cronJobKind, { name, namespace }, signal);
  const { active = [], lastScheduleTime, lastSuccessfulTime } = newer.status ?? {};
  if (!active.some((reference) => reference.uid === uid)) return false;
  sync.cronJob = newer;
  sync.active = active;
  sync.lastScheduleTime = lastScheduleTime;
  sync.lastSuccessfulTime = lastSuccessfulTime;
  return true;
}

/** Removes active jobs that do not exist any more, which the informer may only not have shown yet. */
async function dropMissingJobs(
  sync: CronJobSync,
  jobs: readonly Job[],
  { client, recorder, signal }: CronJobSyncDeps,
): Promise<void> {
  const known = new Set(jobs.map(({ metadata }) => metadata?.uid));
  for (const { name = "", namespace, uid } of sync.active) {
    if (known.has(uid)) continue;
    try {
      await client.get(jobKind, { name, namespace }, signal);
    } catch (error) {
      if (statusCodeOf(error) !== 404) throw error;
      const about = objectReference(sync.cronJob);
      recorder.record(about, "Normal", "MissingJob", `Active job went missing: ${name}`);
      sync.active = sync.active.filter((reference) => reference.uid !== uid);
      sync.isChanged = true;
    }
  }
}

async function startDueRun(sync: CronJobSync, deps: CronJobSyncDeps): Promise<number | undefined> {
  const { cronJob, spec } = sync;
  const { recorder, clock } = deps;
  if (cronJob.metadata?.deletionTimestamp !== undefined) return undefined;
  const about = objectReference(cronJob);
  if (spec.timeZone !== undefined && !isTimeZone(spec.timeZone)) {
    const message = `invalid timeZone: ${JSON.stringify(spec.timeZone)}: unknown time zone ${spec.timeZone}`;
    recorder.record(about, "Warning", "UnknownTimeZone", message);
    return undefined;
  }
  if (spec.suspend === true) return undefined;
  const schedule = readSchedule(sync, recorder);
  if (schedule === undefined) return undefined;
  const times = runTimes(sync, schedule, clock.now());
  let due: number | undefined;
  try {
    const { time, tooManyMissed } = dueRun(times);
    due = time;
    if (tooManyMissed) {
      const message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
      recorder.record(about, "Warning", "TooManyMissedTimes", message);
    }
  } catch (error) {
    if (!(error instanceof NoRunError)) throw error;
    const message = `invalid schedule: ${spec.schedule} : ${error.message}`;
    recorder.record(about, "Warning", "InvalidSchedule", message);
    return undefined;
  }
  if (due !== undefined) await startRun(sync, due, deps);
  return untilNextRun({ ...times, ...runTimes(sync, schedule, times.now) });
}

function readSchedule({ cronJob, spec }: CronJobSync, recorder: EventRecorder): CronSchedule | undefined {
  const about = objectReference(cronJob);
  if (ZONE.test(spec.schedule)) {
    const message =
      `CRON_TZ or TZ used in schedule ${JSON.stringify(spec.schedule)} is not officially supported, ` +
      "see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
    recorder.record(about, "Warning", "UnsupportedSchedule", message);
  }
  try {
    return parseCronSchedule(spec.schedule);
  } catch (error) {
    if (!(error instanceof CronError)) throw error;
    const message = `unparseable schedule: ${JSON.stringify(spec.schedule)} : ${error.message}`;
    recorder.record(about, "Warning", "UnparseableSchedule", message);
    return undefined;
  }
}

/** Milliseconds until the next run of the schedule as it is now; undefined if it has none. */
export function untilNextRunOf(cronJob: CronJob, now: number): number | undefined {
  const { spec, status } = cronJob;
  if (spec === undefined || (spec.timeZone !== undefined && !isTimeZone(spec.timeZone))) return undefined;
  try {
    const times = { cronJob, spec, lastScheduleTime: status?.lastScheduleTime };
    return untilNextRun(runTimes(times, parseCronSchedule(spec.schedule), now));
  } catch (error) {
    if (error instanceof CronError) return undefined;
    throw error;
  }
}

function runTimes(
  { cronJob, spec, lastScheduleTime }: Pick<CronJobSync, "cronJob" | "spec" | "lastScheduleTime">,
  schedule: CronSchedule,
  now: number,
): RunTimes {
  const since = lastScheduleTime ?? cronJob.metadata?.creationTimestamp;
  return {
    schedule,
    zone: ZONE.exec(spec.schedule)?.[1] || spec.timeZone || localZone(),
    since: since === undefined ? now : Date.parse(since),
    now,
    startingDeadlineSeconds: spec.startingDeadlineSeconds,
  };
}

function localZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Does nothing if the run has been started before, or must not start. */
async function startRun(sync: CronJobSync, due: number, deps: CronJobSyncDeps): Promise<void> {
  const { cronJob, spec } = sync;
  const { client, recorder, clock, skew, signal } = deps;
  const about = objectReference(cronJob);
  const { startingDeadlineSeconds: deadline } = spec;
  if (deadline !== undefined && due + deadline * 1000 < clock.now()) {
    const time = new Date(due).toUTCString().replace("GMT", "+0000");
    recorder.record(about, "Warning", "MissSchedule", `Missed scheduled time to start a job: ${time}`);
    return;
  }
  const job = jobOfRun(sync, due);
  const isKnown = sync.active.some(({ name }) => name === job.metadata?.name);
  if (isKnown || (sync.lastScheduleTime !== undefined && Date.parse(sync.lastScheduleTime) === due)) return;
  if (spec.concurrencyPolicy === "Forbid" && sync.active.length > 0) {
    const message = "Not starting job because prior execution is running and concurrency policy is Forbid";
    recorder.record(about, "Normal", "JobAlreadyActive", message);
    return;
  }
  if (spec.concurrencyPolicy === "Replace") await deleteActiveJobs(sync, deps);
  let created: Job;
  try {
    created = await client.create(jobKind, job, signal);
    skew.observe((clock.now() - due) / 1000);
    recorder.record(about, "Normal", "SuccessfulCreate", `Created job ${created.metadata?.name}`);
  } catch (error) {
    if (signal.aborted || isNamespaceTerminating(error)) throw error;
    if (statusCodeOf(error) !== 409) {
      recorder.record(about, "Warning", "FailedCreate", `Error creating job: ${messageOf(error)}`);
      throw error;
    }
    // An earlier sync created it and failed to write the status.
    const { name = "", namespace } = job.metadata ?? {};
    created = await client.get(jobKind, { name, namespace }, signal);
    if (controllerOf(created)?.uid !== cronJob.metadata?.uid) return;
  }
  sync.active = [...sync.active, objectReference(created)];
  sync.lastScheduleTime = formatTime(due);
  sync.isChanged = true;
}

async function deleteActiveJobs(sync: CronJobSync, deps: CronJobSyncDeps): Promise<void> {
  const { client, recorder, signal } = deps;
  for (const { name = "", namespace } of sync.active) {
    let job: Job;
    try {
      job = await client.get(jobKind, { name, namespace }, signal);
    } catch (error) {
      const message = `Get job: ${messageOf(error)}`;
      if (!signal.aborted) recorder.record(objectReference(sync.cronJob), "Warning", "FailedGet", message);
      throw error;
    }
    if (!(await deleteJob(sync, job, deps))) throw new Error(`could not replace job ${namespace}/${name}`);
  }
}

/** The name follows from the time, so that a run is not started twice. */
function jobOfRun({ cronJob, spec }: CronJobSync, due: number): Job {
  const { name, namespace } = cronJob.metadata ?? {};
  const { metadata, spec: jobSpec } = spec.jobTemplate;
  const annotations = { ...metadata?.annotations, [SCHEDULED_AT]: formatInZone(due, spec.timeZone ?? "UTC") };
  return {
    metadata: {
      name: `${name}-${Math.floor(due / MINUTE_MS)}`,
      namespace,
      labels: metadata?.labels,
      annotations,
      ownerReferences: [controllerReference(cronJob)],
    },
    spec: jobSpec,
  };
}
