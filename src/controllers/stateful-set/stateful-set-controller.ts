/**
 * The StatefulSet controller: pods with names, claims and an order.
 *
 *     informers → queue → claim revisions and pods → one step, unless expectations are open
 *       → status → history
 */

import { controllerRevisionKind } from "../../api/apps/controller-revision/kind.ts";
import type { ControllerRevision } from "../../api/apps/controller-revision/schema.ts";
import { statefulSetKind } from "../../api/apps/stateful-set/kind.ts";
import type { StatefulSet } from "../../api/apps/stateful-set/schema.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { WorkQueue } from "../../std/async/work-queue.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import { type ControllerDeps, isFeatureEnabled } from "../controller.ts";
import { createControllerQueue, RATE_LIMITER } from "../controller-queue.ts";
import { untilAvailable } from "../workload/active-pods.ts";
import { claimObjects } from "../workload/claim-objects.ts";
import { Expectations } from "../workload/expectations.ts";
import { keyOf, splitKey } from "../workload/object-keys.ts";
import { OwnedObjects } from "../workload/owned-objects.ts";
import { OwnerLookup } from "../workload/owner-lookup.ts";
import { StatefulPodControl } from "./stateful-pod-control.ts";
import { isMember } from "./stateful-pods.ts";
import { syncRevisions, truncateHistory } from "./stateful-set-revisions.ts";
import { completeRollingUpdate, writeStatus } from "./stateful-set-status.ts";
import { syncStatefulSet } from "./stateful-set-sync.ts";

const WORKERS = 5;

export async function runStatefulSetController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const component = "statefulset-controller";
  await using recorder = createEventRecorder({ client, clock, random, log, component, qps: 0 });
  const sets = informers.of(statefulSetKind);
  const pods = informers.of(podKind);
  const claims = informers.of(persistentVolumeClaimKind);
  const revisions = informers.of(controllerRevisionKind);
  using podsByOwner = new OwnedObjects(pods);
  using revisionsByOwner = new OwnedObjects(revisions);
  const expectations = new Expectations(clock);
  const control = new StatefulPodControl({ client, recorder, claims, expectations });
  const parts = { sets, pods, podsByOwner, revisionsByOwner, expectations, control };
  using controller = new StatefulSetController(deps, parts);
  await using queue = createControllerQueue(deps, {
    name: "statefulset",
    workers: WORKERS,
    backoff: RATE_LIMITER,
    sync: (key, stopping) => controller.sync(key, stopping),
    onError: (key, error) => {
      // A conflict is expected: the informer is behind the writes of this or another controller.
      const level = isNotFoundOrConflict(error) ? 4 : 2;
      log.v(level)?.info("Failed to sync stateful set, will retry", { key, error: String(error) });
    },
  });
  controller.queue = queue;
  await waitForCacheSync([sets, pods, claims, revisions], signal);
  using subscriptions = new DisposableStack();
  controller.subscribe(subscriptions);
  await waitForAbort(signal);
}

interface Parts {
  readonly sets: Informer<StatefulSet>;
  readonly pods: Informer<Pod>;
  readonly podsByOwner: OwnedObjects<Pod>;
  readonly revisionsByOwner: OwnedObjects<ControllerRevision>;
  readonly expectations: Expectations;
  readonly control: StatefulPodControl;
}

class StatefulSetController implements Disposable {
  queue: WorkQueue | undefined;
  readonly #deps: ControllerDeps;
  readonly #parts: Parts;
  readonly #owners: OwnerLookup<StatefulSet>;
  /** When the next pod of a set becomes available, or expectations expire. */
  readonly #timers: KeyTimers;

  constructor(deps: ControllerDeps, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
    this.#owners = new OwnerLookup(statefulSetKind, parts.sets, ({ spec }) => spec?.selector);
    this.#timers = new KeyTimers(deps.clock, (key) => this.queue?.add(key));
  }

  [Symbol.dispose](): void {
    this.#timers[Symbol.dispose]();
  }

  subscribe(subscriptions: DisposableStack): void {
    const { sets, pods } = this.#parts;
    subscriptions.defer(
      pods.subscribe({
        put: (pod, before) => this.#podChanged(pod, before),
        delete: (pod) => this.#podDeleted(pod),
      }),
    );
    subscriptions.defer(
      sets.subscribe({
        put: (set, before) => {
          if (before !== undefined && before.metadata?.uid !== set.metadata?.uid) this.#forget(keyOf(set));
          this.#add([set]);
        },
        delete: (set) => this.#forget(keyOf(set)),
      }),
    );
  }

  #add(sets: readonly StatefulSet[]): void {
    for (const set of sets) this.queue?.add(keyOf(set));
  }

  #forget(key: string): void {
    this.#parts.expectations.forget(key);
    this.#timers.delete(key);
  }

  #podChanged(pod: Pod, before: Pod | undefined): void {
    if (pod.metadata?.deletionTimestamp !== undefined) {
      this.#podDeleted(pod);
      return;
    }
    const owner = this.#owners.controllerOf(pod);
    const isNew = before === undefined || before.metadata?.uid !== pod.metadata?.uid;
    if (isNew && owner !== undefined) this.#parts.expectations.creationObserved(keyOf(owner));
    // The informer has missed the deletion of a pod whose name is used again.
    if (isNew && before !== undefined) this.#podDeleted(before);
    this.#add(this.#owners.affectedBy(pod, before));
  }

  #podDeleted(pod: Pod): void {
    const owner = this.#owners.controllerOf(pod);
    if (owner === undefined) return;
    this.#parts.expectations.deletionObserved(keyOf(owner), keyOf(pod));
    this.#add([owner]);
  }

  async sync(key: string, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const set = this.#parts.sets.get(name, namespace);
    if (set === undefined) {
      this.#forget(key);
      return;
    }
    const { client, clock } = this.#deps;
    const revisions = await this.#claimRevisions(set, signal);
    const pods = await this.#claimPods(set, signal);
    const { expectations } = this.#parts;
    // The informer shows neither the last creation nor the last deletion: names would be used twice.
    if (!expectations.areSatisfied(key)) {
      this.#timers.set(key, expectations.untilExpired(key));
      return;
    }
    const context = { client, set, signal };
    const synced = await syncRevisions(context, revisions);
    const { control } = this.#parts;
    const now = clock.now();
    const allowsMaxUnavailable = isFeatureEnabled(this.#deps, "MaxUnavailableStatefulSet");
    const step = { set, revisions: synced, control, now, allowsMaxUnavailable, signal };
    const { status, failure } = await syncStatefulSet(step, pods);
    await writeStatus(client, set, completeRollingUpdate(set, status), signal).catch((error: unknown) => {
      // The first error is the more interesting one.
      throw failure === undefined ? error : failure.error;
    });
    await truncateHistory(context, revisions, pods, [synced.current, synced.update]);
    if (failure !== undefined) throw failure.error;
    const minReadySeconds = set.spec?.minReadySeconds ?? 0;
    const pending = pods.map((pod) => untilAvailable(pod, minReadySeconds, now)).filter((left) => left > 0);
    if (pending.length > 0) this.#timers.set(key, Math.min(...pending));
    else this.#timers.delete(key);
  }

  /** Adopts revisions that match the selector; a set that is being deleted adopts nothing. */
  async #claimRevisions(set: StatefulSet, signal: AbortSignal): Promise<readonly ControllerRevision[]> {
    const selector = requirementsOf(set.spec?.selector ?? {});
    const matching = this.#parts.revisionsByOwner
      .ownedOrOrphaned(set)
      .filter(({ metadata }) => matchesLabels(selector, metadata?.labels));
    return await claimObjects(matching, { ...this.#claimOptions(set, signal), kind: controllerRevisionKind });
  }

  async #claimPods(set: StatefulSet, signal: AbortSignal): Promise<readonly Pod[]> {
    const candidates = this.#parts.podsByOwner.ownedOrOrphaned(set);
    const filter = (pod: Pod): boolean => isMember(set, pod);
    return await claimObjects(candidates, { ...this.#claimOptions(set, signal), kind: podKind, filter });
  }

  #claimOptions(set: StatefulSet, signal: AbortSignal) {
    const selector = requirementsOf(set.spec?.selector ?? {});
    return { client: this.#deps.client, ownerKind: statefulSetKind, owner: set, selector, signal };
  }
}
