/** Deletes jobs, with what they own, when the time that they ask for after their end is over. */

import { jobKind } from "../../api/batch/job/kind.ts";
import type { Job } from "../../api/batch/job/schema.ts";
import { StatusError } from "../../api/status.ts";
import { reflect } from "../../client/informer/reflector.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import type { ControllerDeps } from "../controller.ts";

export async function runTtlAfterFinished(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 2,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: (key, stopping) => expire(key, stopping),
    onError: (key, error) => log.error("Cannot delete a job whose time is over; trying again", error, { key }),
  });
  // Of each job that waits nothing but its name and its time is kept.
  using due = new KeyTimers(clock, (key) => queue.add(key));

  async function expire(key: string, stopping: AbortSignal): Promise<void> {
    const [namespace = "", name = ""] = key.split("/");
    try {
      // The view may be old, and its time may have been put off since.
      const job = await client.get(jobKind, { name, namespace }, stopping);
      const expiry = expiryOf(job);
      if (expiry === undefined) return;
      const left = expiry - clock.now();
      if (left > 0) {
        due.set(key, left);
        return;
      }
      const { uid, resourceVersion } = job.metadata ?? {};
      const preconditions = { uid, resourceVersion };
      await client.delete(jobKind, { name, namespace }, { propagationPolicy: "Foreground", preconditions }, stopping);
      log.v(2)?.info("Deleted a job whose time was over", { namespace, name });
    } catch (error) {
      if (!(error instanceof StatusError) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
      // Changed meanwhile: the watch tells what its time is now.
    }
  }
  const observe = (job: Job): void => {
    const expiry = expiryOf(job);
    if (expiry === undefined) due.delete(keyOf(job));
    else due.set(keyOf(job), expiry - clock.now());
  };
  const onEvent: Parameters<typeof reflect<Job>>[0]["onEvent"] = (event) => {
    if (event.type === "replace") {
      due.clear();
      for (const job of event.items) observe(job);
    } else if (event.type === "put") observe(event.object);
    else due.delete(keyOf(event.object));
  };
  await reflect({ client, clock, random, log, kind: jobKind, onEvent }, signal);
}

function keyOf({ metadata }: Job): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

/** Milliseconds since 1970; undefined for a job that has not finished, asks for nothing or goes already. */
function expiryOf({ metadata, spec, status }: Job): number | undefined {
  const seconds = spec?.ttlSecondsAfterFinished;
  if (seconds === undefined || metadata?.deletionTimestamp !== undefined) return undefined;
  const end = (status?.conditions ?? []).find(
    (condition) => (condition.type === "Complete" || condition.type === "Failed") && condition.status === "True",
  );
  if (end?.lastTransitionTime === undefined) return undefined;
  return Date.parse(end.lastTransitionTime) + seconds * 1000;
}
