/**
 * The job controller: runs pods until as many as wanted have succeeded, or too many have failed.
 *
 *     informers → queue (batches of 1 s) → claim pods → sync (job-sync.ts)
 *     pods whose job is gone or finished → orphan queue → remove the tracking finalizer
 */

import { jobKind } from "../../api/batch/job/kind.ts";
import type { Job } from "../../api/batch/job/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { WorkQueue } from "../../std/async/work-queue.ts";
import { statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { claimObjects } from "../workload/claim-objects.ts";
import { Expectations } from "../workload/expectations.ts";
import { controllerOf, keyOf, splitKey } from "../workload/object-keys.ts";
import { OwnedObjects } from "../workload/owned-objects.ts";
import { createPodControl, type PodControl } from "../workload/pod-control.ts";
import { FinalizerExpectations } from "./finalizer-expectations.ts";
import { isJobFinished } from "./job-conditions.ts";
import { createJobMetrics, type JobMetrics } from "./job-metrics.ts";
import { BATCH_MS } from "./job-state.ts";
import { syncJob } from "./job-sync.ts";
import { REMOVE_FINALIZER } from "./manage-pods.ts";
import type { BackoffRecord } from "./pod-backoff.ts";
import { hasTrackingFinalizer, TRACKING_FINALIZER } from "./pod-failures.ts";

const JOB_API_VERSION = "batch/v1";
const CONTROLLER_NAME = "kubernetes.io/job-controller";
const BACKOFF = { initialMs: 1000, maxMs: 60_000, jitter: 0 };

export async function runJobController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const jobs = informers.of(jobKind);
  const pods = informers.of(podKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "job-controller", qps: 0 });
  using podsByOwner = new OwnedObjects(pods);
  const controller = new JobController(deps, { jobs, pods, podsByOwner, recorder });
  const onError = (key: string, error: unknown): void =>
    log.v(2)?.info("Failed to sync job, will retry", { key, error: String(error) });
  await using queue = createControllerQueue(deps, {
    name: "job",
    workers: 5,
    backoff: BACKOFF,
    sync: (key, stopping) => controller.sync(key, stopping),
    onError,
  });
  await using orphans = createControllerQueue(
    { clock, random, queueMetrics: deps.queueMetrics },
    {
      name: "job_orphan_pod",
      workers: 1,
      backoff: BACKOFF,
      sync: (key, stopping) => controller.syncOrphan(key, stopping),
      onError,
    },
  );
  controller.queues = { jobs: queue, orphans };
  await waitForCacheSync([jobs, pods], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    pods.subscribe({
      put: (pod, before) => controller.podChanged(pod, before),
      delete: (pod) => controller.podDeleted(pod, true),
    }),
  );
  subscriptions.defer(
    jobs.subscribe({
      put: (job, before) => controller.jobChanged(job, before),
      delete: (job) => controller.jobDeleted(job),
    }),
  );
  await waitForAbort(signal);
}

interface Caches {
  readonly jobs: Informer<Job>;
  readonly pods: Informer<Pod>;
  readonly podsByOwner: OwnedObjects<Pod>;
  readonly recorder: EventRecorder;
}

class JobController {
  queues: { readonly jobs: WorkQueue; readonly orphans: WorkQueue } | undefined;
  readonly #deps: ControllerDeps;
  readonly #caches: Caches;
  readonly #podControl: PodControl;
  readonly #metrics: JobMetrics;
  readonly #expectations: Expectations;
  readonly #finalizers = new FinalizerExpectations();
  /** See `#areCreationsKnown`. Bounded by the number of jobs. */
  readonly #unconfirmed = new Set<string>();
  /** Bounded by the number of unfinished jobs. */
  readonly #backoffs = new Map<string, BackoffRecord>();

  constructor(deps: ControllerDeps, caches: Caches) {
    this.#deps = deps;
    this.#caches = caches;
    this.#podControl = createPodControl(deps.client, caches.recorder, deps.clock);
    this.#expectations = new Expectations(deps.clock);
    this.#metrics = createJobMetrics(deps.registry);
  }

  jobChanged(job: Job, before: Job | undefined): void {
    const key = keyOf(job);
    if (before !== undefined && before.metadata?.uid !== job.metadata?.uid) this.#forget(key);
    const isStatusOnly = before !== undefined && before.metadata?.generation === job.metadata?.generation;
    if (isStatusOnly) this.queues?.jobs.addAfter(key, BATCH_MS);
    else this.queues?.jobs.add(key);
    if (isJobFinished(job)) this.#releasePods(job);
    if (before === undefined && isManagedElsewhere(job)) this.#metrics.recordExternalJob(job.spec?.managedBy ?? "");
  }

  jobDeleted(job: Job): void {
    this.queues?.jobs.add(keyOf(job));
    this.#releasePods(job);
  }

  podChanged(pod: Pod, before: Pod | undefined): void {
    this.#metrics.recordPodChange(before, pod);
    if (pod.metadata?.deletionTimestamp !== undefined) {
      this.podDeleted(pod, false);
      return;
    }
    const previous = before === undefined ? undefined : this.#jobOf(before);
    const job = this.#jobOf(pod);
    const isReleased = !hasTrackingFinalizer(pod);
    if (previous !== undefined && previous !== job) this.#podObserved(previous, pod, isReleased);
    if (job !== undefined) {
      if (before === undefined) this.#expectations.creationObserved(keyOf(job));
      this.#podObserved(job, pod, isReleased);
    } else if (controllerOf(pod) === undefined) this.#orphanChanged(pod, before);
  }

  podDeleted(pod: Pod, isGone: boolean): void {
    if (isGone) this.#metrics.recordPodChange(pod, undefined);
    const job = this.#jobOf(pod);
    const isTracked = hasTrackingFinalizer(pod);
    if (job === undefined || isJobFinished(job)) {
      if (isTracked) this.queues?.orphans.add(keyOf(pod));
      return;
    }
    this.#expectations.deletionObserved(keyOf(job), keyOf(pod));
    this.#podObserved(job, pod, isGone || !isTracked);
  }

  #podObserved(job: Job, pod: Pod, isReleased: boolean): void {
    const key = keyOf(job);
    if (isReleased) this.#finalizers.removalObserved(key, pod.metadata?.uid ?? "");
    this.queues?.jobs.addAfter(key, BATCH_MS);
  }

  /** The pod has no controller: the garbage collector may have removed the reference to its job. */
  #orphanChanged(pod: Pod, before: Pod | undefined): void {
    if (hasTrackingFinalizer(pod)) this.queues?.orphans.add(keyOf(pod));
    const isNew = before === undefined || controllerOf(before) !== undefined;
    if (!isNew && before.metadata?.labels === pod.metadata?.labels) return;
    for (const job of this.#caches.jobs.list()) {
      if (job.metadata?.namespace !== pod.metadata?.namespace) continue;
      const requirements = requirementsOf(job.spec?.selector ?? {});
      if (requirements.length === 0 || !matchesLabels(requirements, pod.metadata?.labels)) continue;
      this.queues?.jobs.addAfter(keyOf(job), BATCH_MS);
    }
  }

  #jobOf(pod: Pod): Job | undefined {
    const controller = controllerOf(pod);
    if (controller?.kind !== jobKind.kind) return undefined;
    const job = this.#caches.jobs.get(controller.name, pod.metadata?.namespace);
    return job?.metadata?.uid === controller.uid ? job : undefined;
  }

  #releasePods(job: Job): void {
    for (const pod of this.#caches.podsByOwner.owned(job.metadata?.uid ?? "")) {
      if (hasTrackingFinalizer(pod)) this.queues?.orphans.add(keyOf(pod));
    }
  }

  #forget(key: string): void {
    this.#expectations.forget(key);
    this.#finalizers.forget(key);
    this.#unconfirmed.delete(key);
    this.#backoffs.delete(key);
  }

  async sync(key: string, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const job = this.#caches.jobs.get(name, namespace);
    if (job === undefined) {
      this.#forget(key);
      return;
    }
    if (isManagedElsewhere(job)) return;
    if (isJobFinished(job)) {
      this.#backoffs.delete(key);
      return;
    }
    if (!(await this.#areCreationsKnown(key, job, signal))) {
      this.queues?.jobs.addAfter(key, BATCH_MS);
      return;
    }
    const isSatisfied = this.#expectations.areSatisfied(key);
    const pods = await this.#claimPods(job, signal);
    const { client, clock } = this.#deps;
    await syncJob(key, job, pods, isSatisfied, {
      client,
      clock,
      recorder: this.#caches.recorder,
      podControl: this.#podControl,
      expectations: this.#expectations,
      finalizers: this.#finalizers,
      metrics: this.#metrics,
      unconfirmed: this.#unconfirmed,
      backoffs: this.#backoffs,
      requeue: (late, milliseconds) => this.queues?.jobs.addAfter(late, milliseconds),
      signal,
    });
  }

  /**
   * A pod may exist though the response to its creation was lost, and the informer may be late after an outage. A pod
   * that is created twice counts towards the back-off limit, so the server is read before the job is synced again.
   */
  async #areCreationsKnown(key: string, { metadata, spec }: Job, signal: AbortSignal): Promise<boolean> {
    if (!this.#unconfirmed.has(key)) return true;
    // One label shortens the list, and the reference to the owner decides: a selector can be too long for a request,
    // and one that a user has written can match the pods of other jobs.
    const [label] = Object.entries(spec?.selector?.matchLabels ?? {});
    const query = { namespace: metadata?.namespace, labelSelector: label?.join("=") };
    const { items } = await this.#deps.client.list(podKind, query, signal);
    const isKnown = (pod: Pod): boolean => {
      if (controllerOf(pod)?.uid !== metadata?.uid) return true;
      const { name = "", namespace, uid } = pod.metadata ?? {};
      return this.#caches.pods.get(name, namespace)?.metadata?.uid === uid;
    };
    if (!items.every(isKnown)) return false;
    this.#unconfirmed.delete(key);
    return true;
  }

  async #claimPods(job: Job, signal: AbortSignal): Promise<readonly Pod[]> {
    const pods = await claimObjects(this.#caches.podsByOwner.ownedOrOrphaned(job), {
      client: this.#deps.client,
      ownerKind: jobKind,
      owner: job,
      kind: podKind,
      selector: requirementsOf(job.spec?.selector ?? {}),
      finalizers: [TRACKING_FINALIZER],
      signal,
    });
    // The adoption has added the finalizer.
    return pods.map((pod) => (controllerOf(pod) === undefined ? withFinalizer(pod) : pod));
  }

  /** Removes the tracking finalizer of a pod that no job will count. */
  async syncOrphan(key: string, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const pod = this.#caches.pods.get(name, namespace);
    if (pod === undefined || !hasTrackingFinalizer(pod)) return;
    const controller = controllerOf(pod);
    const isOfJob = controller?.kind === jobKind.kind && controller.apiVersion === JOB_API_VERSION;
    // The finalizer of a pod that another controller has adopted is that controller's.
    if (controller !== undefined && !isOfJob) return;
    const job = this.#jobOf(pod);
    if (job !== undefined && (isManagedElsewhere(job) || !isJobFinished(job))) return;
    try {
      await this.#deps.client.patch(podKind, { name, namespace }, "strategic", REMOVE_FINALIZER, { signal });
    } catch (error) {
      if (statusCodeOf(error) !== 404) throw error;
    }
  }
}

function isManagedElsewhere({ spec }: Job): boolean {
  return spec?.managedBy !== undefined && spec.managedBy !== CONTROLLER_NAME;
}

function withFinalizer(pod: Pod): Pod {
  const finalizers = new Set([...(pod.metadata?.finalizers ?? []), TRACKING_FINALIZER]);
  return { ...pod, metadata: { ...pod.metadata, finalizers: [...finalizers] } };
}
