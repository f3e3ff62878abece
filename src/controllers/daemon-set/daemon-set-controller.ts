/**
 * The DaemonSet controller: one pod on each node that fits.
 *
 *     informers → queue → revisions → plan of all nodes → rolling update → history limit → status
 */

import { controllerRevisionKind } from "../../api/apps/controller-revision/kind.ts";
import type { ControllerRevision } from "../../api/apps/controller-revision/schema.ts";
import { daemonSetKind } from "../../api/apps/daemon-set/kind.ts";
import type { DaemonSet } from "../../api/apps/daemon-set/schema.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { WorkQueue } from "../../std/async/work-queue.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { isNotFoundOrConflict, statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue, RATE_LIMITER } from "../controller-queue.ts";
import { untilAvailable } from "../workload/active-pods.ts";
import { claimObjects } from "../workload/claim-objects.ts";
import { Expectations } from "../workload/expectations.ts";
import { controllerOf, keyOf, objectReference, splitKey } from "../workload/object-keys.ts";
import { OwnedObjects } from "../workload/owned-objects.ts";
import { OwnerLookup } from "../workload/owner-lookup.ts";
import { createPodControl, type PodControl } from "../workload/pod-control.ts";
import { slowStart } from "../workload/slow-start.ts";
import { cleanUpHistory, constructHistory, hashOf } from "./daemon-history.ts";
import { groupByNode, nameOf, podTemplate } from "./daemon-pods.ts";
import { countNodes, writeStatus } from "./daemon-set-status.ts";
import { FailedPodsBackoff } from "./failed-pods-backoff.ts";
import { fitNode, isSameForPods } from "./node-fit.ts";
import { type FailedPodHandler, type PlanContext, type PodPlan, planPods } from "./plan-pods.ts";
import { planRollingUpdate } from "./rolling-update.ts";

/** The maximum of creations, and of deletions, in one step. */
const BURST_REPLICAS = 250;
const WORKERS = 2;

export async function runDaemonSetController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const component = "daemonset-controller";
  await using recorder = createEventRecorder({ client, clock, random, log, component, qps: 0 });
  const caches = {
    daemonSets: informers.of(daemonSetKind),
    nodes: informers.of(nodeKind),
    pods: informers.of(podKind),
    revisions: informers.of(controllerRevisionKind),
  };
  using podsByOwner = new OwnedObjects(caches.pods);
  using revisionsByOwner = new OwnedObjects(caches.revisions);
  using controller = new DaemonSetController(deps, { ...caches, podsByOwner, revisionsByOwner, recorder });
  await using queue = createControllerQueue(deps, {
    name: "daemonset",
    workers: WORKERS,
    backoff: RATE_LIMITER,
    sync: (key, stopping) => controller.sync(key, stopping),
    onError: (key, error) => {
      // A conflict is expected: the informer is behind the writes of this or another controller.
      const level = isNotFoundOrConflict(error) ? 4 : 2;
      log.v(level)?.info("Failed to sync daemon set, will retry", { key, error: String(error) });
    },
  });
  controller.queue = queue;
  await waitForCacheSync(Object.values(caches), signal);
  using subscriptions = new DisposableStack();
  controller.subscribe(subscriptions);
  await waitForAbort(signal);
}

interface Caches {
  readonly daemonSets: Informer<DaemonSet>;
  readonly nodes: Informer<Node>;
  readonly pods: Informer<Pod>;
  readonly revisions: Informer<ControllerRevision>;
  readonly podsByOwner: OwnedObjects<Pod>;
  readonly revisionsByOwner: OwnedObjects<ControllerRevision>;
  readonly recorder: EventRecorder;
}

/** One sync of a daemon set. */
interface Sync {
  readonly daemonSet: DaemonSet;
  /** The value of the label of pods with the current template. */
  readonly hash: string;
  /** Pods that were adopted at its beginning. */
  readonly adopted: readonly Pod[];
  readonly signal: AbortSignal;
  /** Milliseconds until the next sync that no event causes. */
  readonly delays: number[];
}

class DaemonSetController implements Disposable {
  queue: WorkQueue | undefined;
  readonly #deps: ControllerDeps;
  readonly #caches: Caches;
  readonly #owners: OwnerLookup<DaemonSet>;
  readonly #podControl: PodControl;
  readonly #expectations: Expectations;
  readonly #failedPods: FailedPodsBackoff;
  /** When a pod becomes available, a failed pod may be deleted, or expectations expire. */
  readonly #timers: KeyTimers;

  constructor(deps: ControllerDeps, caches: Caches) {
    this.#deps = deps;
    this.#caches = caches;
    this.#owners = new OwnerLookup(daemonSetKind, caches.daemonSets, ({ spec }) => spec?.selector);
    this.#podControl = createPodControl(deps.client, caches.recorder, deps.clock);
    this.#expectations = new Expectations(deps.clock);
    this.#failedPods = new FailedPodsBackoff(deps.clock);
    this.#timers = new KeyTimers(deps.clock, (key) => this.queue?.add(key));
  }

  [Symbol.dispose](): void {
    this.#timers[Symbol.dispose]();
  }

  subscribe(subscriptions: DisposableStack): void {
    const { daemonSets, nodes, pods, revisions } = this.#caches;
    subscriptions.defer(
      pods.subscribe({
        put: (pod, before) => this.#podChanged(pod, before),
        delete: (pod) => this.#podDeleted(pod),
      }),
    );
    subscriptions.defer(
      revisions.subscribe({
        put: (revision, before) => this.#add(this.#owners.affectedBy(revision, before)),
        delete: (revision) => this.#add([this.#owners.controllerOf(revision)]),
      }),
    );
    subscriptions.defer(nodes.subscribe({ put: (node, before) => this.#nodeChanged(node, before) }));
    subscriptions.defer(
      daemonSets.subscribe({
        put: (daemonSet, before) => {
          if (before !== undefined && before.metadata?.uid !== daemonSet.metadata?.uid) this.#forget(keyOf(daemonSet));
          this.#add([daemonSet]);
        },
        delete: (daemonSet) => {
          this.#forget(keyOf(daemonSet));
          this.#add([daemonSet]);
        },
      }),
    );
  }

  #add(daemonSets: readonly (DaemonSet | undefined)[]): void {
    for (const daemonSet of daemonSets) if (daemonSet !== undefined) this.queue?.add(keyOf(daemonSet));
  }

  #forget(key: string): void {
    this.#expectations.forget(key);
    this.#timers.delete(key);
  }

  #podChanged(pod: Pod, before: Pod | undefined): void {
    if (pod.metadata?.deletionTimestamp !== undefined) {
      this.#podDeleted(pod);
      return;
    }
    const owner = this.#owners.controllerOf(pod);
    if (before === undefined && owner !== undefined) this.#expectations.creationObserved(keyOf(owner));
    this.#add(this.#owners.affectedBy(pod, before));
  }

  #podDeleted(pod: Pod): void {
    const owner = this.#owners.controllerOf(pod);
    if (owner === undefined) return;
    this.#expectations.deletionObserved(keyOf(owner), keyOf(pod));
    this.#add([owner]);
  }

  /** As in Kubernetes, a taint that lets the pod of the node stay starts no sync. */
  #nodeChanged(node: Node, before: Node | undefined): void {
    if (before !== undefined && isSameForPods(before, node)) return;
    for (const daemonSet of this.#caches.daemonSets.list()) {
      const { shouldRun, shouldContinue } = fitNode(node, daemonSet);
      const isScheduled = this.#hasPodOn(daemonSet, node);
      const isMisplaced = !shouldContinue || (daemonSet.status?.numberMisscheduled ?? 0) > 0;
      if (isScheduled ? isMisplaced : shouldRun) this.#add([daemonSet]);
    }
  }

  #hasPodOn({ metadata }: DaemonSet, node: Node): boolean {
    const pods = this.#caches.podsByOwner.owned(metadata?.uid ?? "");
    return pods.some(({ spec }) => spec?.nodeName === node.metadata?.name);
  }

  async sync(key: string, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const daemonSet = this.#caches.daemonSets.get(name, namespace);
    if (daemonSet === undefined) {
      this.#forget(key);
      return;
    }
    if (requirementsOf(daemonSet.spec?.selector ?? {}).length === 0) {
      const message = "This daemon set is selecting all pods. A non-empty selector is required.";
      this.#caches.recorder.record(objectReference(daemonSet), "Warning", "SelectingAll", message);
      return;
    }
    // Its revisions may be gone or orphaned already, so that its status cannot be computed.
    if (daemonSet.metadata?.deletionTimestamp !== undefined) return;
    const { client } = this.#deps;
    const revisions = await this.#claimRevisions(daemonSet, signal);
    const history = await constructHistory({ client, daemonSet, signal }, revisions, () =>
      this.#claimPods(daemonSet, signal),
    );
    if (history === undefined) return;
    const claimed = await this.#claimPods(daemonSet, signal);
    const adopted = claimed.filter((pod) => controllerOf(pod) === undefined);
    const sync: Sync = { daemonSet, hash: hashOf(history.current), adopted, signal, delays: [] };
    const isSatisfied = this.#expectations.areSatisfied(key);
    let failure: { readonly error: unknown } | undefined;
    if (!isSatisfied) sync.delays.push(this.#expectations.untilExpired(key));
    else {
      try {
        await this.#syncPods(sync);
        const pods = [...groupByNode(this.#podsOf(sync), true).values()].flat();
        await cleanUpHistory({ client, daemonSet, signal }, history.old, pods);
      } catch (error) {
        failure = { error };
      }
    }
    await this.#syncStatus(sync, isSatisfied, failure);
    if (sync.delays.length > 0) this.#timers.set(key, Math.min(...sync.delays));
    else this.#timers.delete(key);
    if (failure !== undefined) throw failure.error;
  }

  /**
   * The rolling update is planned from the same pods as the first plan, and only if that changed nothing: a successor
   * that becomes available in between would be replaced, and the next node's created, at the same time. The events of
   * what the first plan changed cause the next sync.
   */
  async #syncPods(sync: Sync): Promise<void> {
    const context = this.#contextOf(sync);
    const plan = planPods(context, this.#failedPodHandler(sync));
    if (plan.create.length > 0 || plan.delete.length > 0) await this.#execute(sync, plan);
    else if (sync.daemonSet.spec?.updateStrategy?.type === "RollingUpdate") {
      await this.#execute(sync, planRollingUpdate(context));
    }
  }

  #contextOf(sync: Sync): PlanContext {
    const { daemonSet, hash } = sync;
    const podsByNode = groupByNode(this.#podsOf(sync), false);
    const nodes = [...this.#caches.nodes.list()];
    return { daemonSet, nodes, hash, now: this.#deps.clock.now(), podsByNode };
  }

  /** As the informer shows them now, and those that it does not show as adopted yet. */
  #podsOf({ daemonSet, adopted }: Sync): readonly Pod[] {
    const selector = requirementsOf(daemonSet.spec?.selector ?? {});
    const owned = this.#caches.podsByOwner
      .owned(daemonSet.metadata?.uid ?? "")
      .filter(({ metadata }) => matchesLabels(selector, metadata?.labels));
    const known = new Set(owned.map(({ metadata }) => metadata?.uid));
    return [...owned, ...adopted.filter(({ metadata }) => !known.has(metadata?.uid))];
  }

  async #claimPods(daemonSet: DaemonSet, signal: AbortSignal): Promise<readonly Pod[]> {
    const candidates = this.#caches.podsByOwner.ownedOrOrphaned(daemonSet);
    return await claimObjects(candidates, { ...this.#claimOptions(daemonSet, signal), kind: podKind });
  }

  async #claimRevisions(daemonSet: DaemonSet, signal: AbortSignal): Promise<readonly ControllerRevision[]> {
    const candidates = this.#caches.revisionsByOwner.ownedOrOrphaned(daemonSet);
    return await claimObjects(candidates, { ...this.#claimOptions(daemonSet, signal), kind: controllerRevisionKind });
  }

  #claimOptions(daemonSet: DaemonSet, signal: AbortSignal) {
    const selector = requirementsOf(daemonSet.spec?.selector ?? {});
    return { client: this.#deps.client, ownerKind: daemonSetKind, owner: daemonSet, selector, signal };
  }

  #failedPodHandler({ daemonSet, delays }: Sync): FailedPodHandler {
    const { recorder } = this.#caches;
    const { uid, namespace } = daemonSet.metadata ?? {};
    return {
      failed: (pod, node) => {
        const delay = this.#failedPods.next(`${uid}/${daemonSet.status?.observedGeneration ?? 0}/${node}`);
        if (delay > 0) {
          delays.push(delay);
          return false;
        }
        const message = `Found failed daemon pod ${namespace}/${nameOf(pod)} on node ${node}, will try to kill it`;
        recorder.record(objectReference(daemonSet), "Warning", "FailedDaemonPod", message);
        return true;
      },
      succeeded: (pod, node) => {
        const message = `Found succeeded daemon pod ${namespace}/${nameOf(pod)} on node ${node}, will try to delete it`;
        recorder.record(objectReference(daemonSet), "Normal", "SucceededDaemonPod", message);
      },
    };
  }

  async #execute({ daemonSet, hash, signal }: Sync, plan: PodPlan): Promise<void> {
    const key = keyOf(daemonSet);
    const created = plan.create.slice(0, BURST_REPLICAS);
    const deleted = plan.delete.slice(0, BURST_REPLICAS);
    this.#expectations.expect(key, created.length, deleted.map(keyOf));
    let next = 0;
    const { successes, error } = await slowStart(created.length, async () => {
      await this.#podControl.create(podTemplate(daemonSet, hash, created[next++] ?? ""), daemonSet, signal);
    });
    for (let skipped = successes; skipped < created.length; skipped++) this.#expectations.creationObserved(key);
    const results = await Promise.allSettled(
      deleted.map(async (pod) => {
        try {
          await this.#podControl.delete(pod, daemonSet, signal);
        } catch (error) {
          this.#expectations.deletionObserved(key, keyOf(pod));
          if (statusCodeOf(error) !== 404) throw error;
        }
      }),
    );
    if (error !== undefined) throw error;
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async #syncStatus(sync: Sync, isSatisfied: boolean, failure: { readonly error: unknown } | undefined): Promise<void> {
    const { daemonSet, signal } = sync;
    const { client, clock, log } = this.#deps;
    try {
      const context = this.#contextOf(sync);
      const generation = isSatisfied ? daemonSet.metadata?.generation : undefined;
      await writeStatus({ client, daemonSet, counters: countNodes(context), generation, signal });
      const minReadySeconds = daemonSet.spec?.minReadySeconds ?? 0;
      for (const pod of [...context.podsByNode.values()].flat()) {
        const left = untilAvailable(pod, minReadySeconds, clock.now());
        if (left > 0) sync.delays.push(left);
      }
    } catch (error) {
      if (failure === undefined) throw error;
      // The first error is the more interesting one.
      log.v(2)?.info("Failed to update the status of daemon set", { key: keyOf(daemonSet), error: String(error) });
    }
  }
}
