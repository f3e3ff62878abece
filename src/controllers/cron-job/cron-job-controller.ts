/** The cron job controller: starts a job at each time of a schedule. */

import { cronJobKind } from "../../api/batch/cron-job/kind.ts";
import type { CronJob } from "../../api/batch/cron-job/schema.ts";
import { jobKind } from "../../api/batch/job/kind.ts";
import type { Job } from "../../api/batch/job/schema.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { controllerOf, keyOf, splitKey } from "../workload/object-keys.ts";
import { OwnedObjects } from "../workload/owned-objects.ts";
import { syncCronJob, untilNextRunOf } from "./cron-job-sync.ts";

const BACKOFF = { initialMs: 5, maxMs: 1_000_000, jitter: 0 };
/** How often the time of day is compared with the monotonic clock, and by how much they may differ. */
const JUMP_CHECK_MS = 30_000;
const JUMP_MS = 2000;

export async function runCronJobController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const cronJobs = informers.of(cronJobKind);
  const jobs = informers.of(jobKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "cronjob-controller", qps: 0 });
  using jobsByOwner = new OwnedObjects(jobs);
  await using queue = createControllerQueue(deps, {
    name: "cronjob",
    workers: 5,
    backoff: BACKOFF,
    sync: syncKey,
    onError: (key, error) => log.v(2)?.info("Failed to sync cron job, will retry", { key, error: String(error) }),
  });
  const skew = (deps.registry ?? new MetricRegistry())
    .histogram(
      {
        name: "cronjob_controller_job_creation_skew_duration_seconds",
        help: "Time from the scheduled time of a job to its creation.",
        stability: "STABLE",
      },
      exponentialBuckets(1, 2, 10),
    )
    .with();
  using runs = new KeyTimers(clock, (key) => queue.add(key));

  async function syncKey(key: string, stopping: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const cronJob = cronJobs.get(name, namespace);
    runs.delete(key);
    if (cronJob === undefined) return;
    const owned = jobsByOwner.owned(cronJob.metadata?.uid ?? "");
    const next = await syncCronJob(cronJob, owned, { client, clock, recorder, skew, signal: stopping });
    if (next !== undefined && next !== Infinity) runs.set(key, next);
  }

  const add = (cronJob: CronJob): void => queue.add(keyOf(cronJob));
  /** A run that another schedule would have had before is not missed: the sync waits for the next one. */
  const changed = (cronJob: CronJob, before: CronJob | undefined): void => {
    const hasNewSchedule =
      before !== undefined &&
      (before.spec?.schedule !== cronJob.spec?.schedule || before.spec?.timeZone !== cronJob.spec?.timeZone);
    const next = hasNewSchedule ? untilNextRunOf(cronJob, clock.now()) : undefined;
    if (next === undefined) add(cronJob);
    else if (next !== Infinity) runs.set(keyOf(cronJob), next);
  };
  const addOwner = (job: Job): void => {
    const controller = controllerOf(job);
    if (controller?.kind !== cronJobKind.kind) return;
    const owner = cronJobs.get(controller.name, job.metadata?.namespace);
    if (owner?.metadata?.uid === controller.uid) add(owner);
  };

  await waitForCacheSync([cronJobs, jobs], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(cronJobs.subscribe({ put: changed, delete: add }));
  subscriptions.defer(
    jobs.subscribe({
      put: (job, before) => {
        if (before !== undefined && controllerOf(before)?.uid !== controllerOf(job)?.uid) addOwner(before);
        addOwner(job);
      },
      delete: addOwner,
    }),
  );

  // Timers do not see that the time of day was set, or that the machine slept.
  const distance = (): number => clock.now() - clock.monotonic();
  let expected = distance();
  using jumpCheck = new KeyTimers(clock, () => {
    if (Math.abs(distance() - expected) > JUMP_MS) for (const cronJob of cronJobs.list()) add(cronJob);
    expected = distance();
    jumpCheck.set("check", JUMP_CHECK_MS);
  });
  jumpCheck.set("check", JUMP_CHECK_MS);
  await waitForAbort(signal);
}
