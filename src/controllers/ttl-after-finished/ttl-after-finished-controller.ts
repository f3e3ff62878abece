/** The TTL-after-finished controller: deletes finished jobs with their dependents after `ttlSecondsAfterFinished`. */

import { jobKind } from "../../api/batch/job/kind.ts";
import type { Job } from "../../api/batch/job/schema.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";

export async function runTtlAfterFinishedController(deps: ControllerDeps): Promise<void> {
  const { client, clock, informers, log, signal } = deps;
  await using queue = createControllerQueue(deps, {
    name: "ttl_jobs_to_delete",
    workers: 2,
    sync: syncJob,
    onError: (key, error) => log.error("Failed to delete finished job, will retry", error, { key }),
  });
  const delays = (deps.registry ?? new MetricRegistry())
    .histogram(
      {
        name: "ttl_after_finished_controller_job_deletion_duration_seconds",
        help: "Time from the end of a job's TTL to its deletion.",
        stability: "ALPHA",
      },
      exponentialBuckets(0.1, 2, 14),
    )
    .with();
  using expirations = new KeyTimers(clock, (key) => queue.add(key));

  async function syncJob(key: string, stopping: AbortSignal): Promise<void> {
    const [namespace = "", name = ""] = key.split("/");
    try {
      // The TTL may have been extended since the event.
      const job = await client.get(jobKind, { name, namespace }, stopping);
      const expiry = expirationOf(job);
      if (expiry === undefined) return;
      const left = expiry - clock.now();
      if (left > 0) {
        expirations.set(key, left);
        return;
      }
      const { uid, resourceVersion } = job.metadata ?? {};
      const preconditions = { uid, resourceVersion };
      await client.delete(jobKind, { name, namespace }, { propagationPolicy: "Foreground", preconditions }, stopping);
      delays.observe(-left / 1000);
      log.v(2)?.info("Deleted finished job", { namespace, name });
    } catch (error) {
      if (!isNotFoundOrConflict(error)) throw error;
      // The watch reports the new TTL.
    }
  }
  const observe = (job: Job): void => {
    const expiry = expirationOf(job);
    if (expiry === undefined) expirations.delete(keyOf(job));
    else expirations.set(keyOf(job), expiry - clock.now());
  };
  using subscriptions = new DisposableStack();
  const unsubscribe = informers.of(jobKind).subscribe({
    put: observe,
    delete: (job) => expirations.delete(keyOf(job)),
  });
  subscriptions.defer(unsubscribe);
  await waitForAbort(signal);
}

function keyOf({ metadata }: Job): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

/** Milliseconds since 1970; undefined for jobs that are not finished, have no TTL or are being deleted. */
function expirationOf({ metadata, spec, status }: Job): number | undefined {
  const seconds = spec?.ttlSecondsAfterFinished;
  if (seconds === undefined || metadata?.deletionTimestamp !== undefined) return undefined;
  const end = (status?.conditions ?? []).find(
    (condition) => (condition.type === "Complete" || condition.type === "Failed") && condition.status === "True",
  );
  if (end?.lastTransitionTime === undefined) return undefined;
  return Date.parse(end.lastTransitionTime) + seconds * 1000;
}
