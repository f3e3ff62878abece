/**
 * The ReplicaSet and ReplicationController controllers: create and delete pods until as many as wanted match the
 * selector.
 *
 *     informers → queue → claim pods → create or delete, unless expectations are open → status
 */

import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import type { ReplicaSet, ReplicaSetStatus } from "../../api/apps/replica-set/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodTemplateSpec } from "../../api/core/pod-template/schema.ts";
import { replicationControllerKind } from "../../api/core/replication-controller/kind.ts";
import type { ReplicationController } from "../../api/core/replication-controller/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { LabelSelector } from "../../api/meta/label-selector.ts";
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { WorkQueue } from "../../std/async/work-queue.ts";
import type { Histogram } from "../../std/metrics/metrics.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { statusCodeOf } from "../api-errors.ts";
import { type ControllerDeps, isFeatureEnabled } from "../controller.ts";
import { createControllerQueue, RATE_LIMITER } from "../controller-queue.ts";
import { isActive, isTerminatingPod, sortForDeletion, untilAvailable } from "../workload/active-pods.ts";
import { claimObjects } from "../workload/claim-objects.ts";
import { Expectations } from "../workload/expectations.ts";
import { controllerOf, keyOf, splitKey } from "../workload/object-keys.ts";
import { OwnedObjects } from "../workload/owned-objects.ts";
import { createPodControl, messageOf, type PodControl } from "../workload/pod-control.ts";
import { slowStart } from "../workload/slow-start.ts";
import { deletionAgeRatio, observeDeletion } from "./deletion-metrics.ts";
import { calculateStatus } from "./replica-status.ts";

/** The maximum of creations or deletions in one sync. */
const BURST_REPLICAS = 500;

interface ReplicaKind<T extends ApiObject> {
  readonly kind: Kind<T>;
  readonly component: string;
  readonly queueName: string;
  readonly selectorOf: (owner: T) => LabelSelector;
}

/** What replica sets and replication controllers have in common. */
interface ReplicaOwner extends ApiObject {
  readonly spec?:
    | {
        readonly replicas?: number | undefined;
        readonly minReadySeconds?: number | undefined;
        readonly template?: PodTemplateSpec | undefined;
      }
    | undefined;
  readonly status?: ReplicaSetStatus | undefined;
}

/**
 * The controller that created a replica set writes its own status first, as in Kubernetes, where the event of the
 * creation takes longer than the response to it.
 */
const CREATOR_MS = 1;

export async function runReplicaSetController(deps: ControllerDeps): Promise<void> {
  await runReplicaController<ReplicaSet>(deps, {
    kind: replicaSetKind,
    component: "replicaset-controller",
    queueName: "replicaset",
    selectorOf: ({ spec }) => spec?.selector ?? {},
  });
}

export async function runReplicationController(deps: ControllerDeps): Promise<void> {
  await runReplicaController<ReplicationController>(deps, {
    kind: replicationControllerKind,
    component: "replication-controller",
    queueName: "replicationmanager",
    selectorOf: ({ spec }) => ({ matchLabels: spec?.selector }),
  });
}

async function runReplicaController<T extends ReplicaOwner>(deps: ControllerDeps, type: ReplicaKind<T>): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const owners = informers.of(type.kind);
  const pods = informers.of(podKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: type.component, qps: 0 });
  using podsByOwner = new OwnedObjects(pods);
  using ownersByOwner = new OwnedObjects(owners);
  using controller = new ReplicaController(deps, type, { owners, podsByOwner, ownersByOwner, recorder });
  await using queue = createControllerQueue(deps, {
    name: type.queueName,
    workers: 5,
    backoff: RATE_LIMITER,
    sync: (key, stopping) => controller.sync(key, stopping),
    onError: (key, error) =>
      log.v(2)?.info(`Failed to sync ${type.kind.singular}, will retry`, { key, error: String(error) }),
  });
  controller.queue = queue;
  await waitForCacheSync([owners, pods], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    pods.subscribe({
      put: (pod, before) => controller.podChanged(pod, before),
      delete: (pod) => controller.podDeleted(pod),
    }),
  );
  subscriptions.defer(
    owners.subscribe({
      put: (owner, before) => controller.ownerChanged(owner, before),
      delete: (owner) => controller.ownerDeleted(owner),
    }),
  );
  await waitForAbort(signal);
}

interface Caches<T extends ApiObject> {
  readonly owners: Informer<T>;
  readonly podsByOwner: OwnedObjects<Pod>;
  readonly ownersByOwner: OwnedObjects<T>;
  readonly recorder: EventRecorder;
}

class ReplicaController<T extends ReplicaOwner> implements Disposable {
  queue: WorkQueue | undefined;
  readonly #deps: ControllerDeps;
  readonly #type: ReplicaKind<T>;
  readonly #caches: Caches<T>;
  readonly #podControl: PodControl;
  readonly #expectations: Expectations;
  readonly #ageRatio: Histogram;
  /** When the next pod of an owner becomes available, or expectations expire. */
  readonly #timers: KeyTimers;

  constructor(deps: ControllerDeps, type: ReplicaKind<T>, caches: Caches<T>) {
    this.#deps = deps;
    this.#type = type;
    this.#caches = caches;
    this.#podControl = createPodControl(deps.client, caches.recorder, deps.clock);
    this.#expectations = new Expectations(deps.clock);
    this.#ageRatio = deletionAgeRatio(deps.registry);
    this.#timers = new KeyTimers(deps.clock, (key) => this.queue?.add(key));
  }

  [Symbol.dispose](): void {
    this.#timers[Symbol.dispose]();
  }

  ownerChanged(owner: T, before: T | undefined): void {
    if (before !== undefined && before.metadata?.uid !== owner.metadata?.uid) this.#expectations.forget(keyOf(owner));
    if (before === undefined && controllerOf(owner) !== undefined) this.queue?.addAfter(keyOf(owner), CREATOR_MS);
    else this.queue?.add(keyOf(owner));
  }

  ownerDeleted(owner: T): void {
    this.#expectations.forget(keyOf(owner));
    this.queue?.add(keyOf(owner));
  }

  podChanged(pod: Pod, before: Pod | undefined): void {
    if (pod.metadata?.deletionTimestamp !== undefined) {
      this.podDeleted(pod);
      return;
    }
    const owner = this.#ownerOf(pod);
    if (before === undefined) {
      if (owner !== undefined) this.#expectations.creationObserved(keyOf(owner));
    } else {
      const previous = this.#ownerOf(before);
      if (previous !== undefined && previous !== owner) this.queue?.add(keyOf(previous));
    }
    if (controllerOf(pod) === undefined) {
      this.#addMatching(pod);
      return;
    }
    if (owner === undefined) return;
    this.queue?.add(keyOf(owner));
  }

  podDeleted(pod: Pod): void {
    const owner = this.#ownerOf(pod);
    if (owner === undefined) return;
    this.#expectations.deletionObserved(keyOf(owner), keyOf(pod));
    this.queue?.add(keyOf(owner));
  }

  #ownerOf(pod: Pod): T | undefined {
    const controller = controllerOf(pod);
    if (controller?.kind !== this.#type.kind.kind) return undefined;
    const owner = this.#caches.owners.get(controller.name, pod.metadata?.namespace);
    return owner?.metadata?.uid === controller.uid ? owner : undefined;
  }

  #addMatching(pod: Pod): void {
    const namespace = pod.metadata?.namespace;
    for (const owner of this.#caches.owners.list()) {
      if (owner.metadata?.namespace === namespace && this.#selects(owner, pod)) this.queue?.add(keyOf(owner));
    }
  }

  #selects(owner: T, pod: Pod): boolean {
    const requirements = requirementsOf(this.#type.selectorOf(owner));
    return requirements.length > 0 && matchesLabels(requirements, pod.metadata?.labels);
  }

  async sync(key: string, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const owner = this.#caches.owners.get(name, namespace);
    if (owner === undefined) {
      this.#expectations.forget(key);
      this.#timers.delete(key);
      return;
    }
    const isSatisfied = this.#expectations.areSatisfied(key);
    const { kind, selectorOf } = this.#type;
    const all = this.#caches.podsByOwner.ownedOrOrphaned(owner);
    const candidates = all.filter(isActive);
    const selector = requirementsOf(selectorOf(owner));
    const { client, clock } = this.#deps;
    const pods = await claimObjects(candidates, { client, ownerKind: kind, owner, kind: podKind, selector, signal });
    const isTerminating = owner.metadata?.deletionTimestamp !== undefined;
    const error = isSatisfied && !isTerminating ? await this.#manageReplicas(owner, pods, signal) : undefined;
    const { replicas = 1, minReadySeconds = 0, template } = owner.spec ?? {};
    const generation = owner.metadata?.generation ?? 0;
    const view = { replicas, minReadySeconds, template, status: owner.status, generation };
    const status = calculateStatus(view, pods, error, clock.now(), this.#countTerminating(owner, all));
    if (status !== undefined) await this.#updateStatus(owner, status, signal);
    if (error !== undefined) throw error;
    const delays = pods.map((pod) => untilAvailable(pod, minReadySeconds, clock.now()));
    if (!isSatisfied) delays.push(this.#expectations.untilExpired(key));
    const pending = delays.filter((left) => left > 0);
    if (pending.length > 0) this.#timers.set(key, Math.min(...pending));
    else this.#timers.delete(key);
  }

  /** Resolves with the first error. */
  async #manageReplicas(owner: T, pods: readonly Pod[], signal: AbortSignal): Promise<unknown> {
    const key = keyOf(owner);
    const missing = (owner.spec?.replicas ?? 1) - pods.length;
    const count = Math.min(Math.abs(missing), BURST_REPLICAS);
    if (missing > 0) {
      const template = owner.spec?.template ?? {};
      this.#expectations.expectCreations(key, count);
      const create = (): Promise<void> => this.#podControl.create(template, owner, signal);
      const { successes, error } = await slowStart(count, create);
      for (let skipped = successes; skipped < count; skipped++) this.#expectations.creationObserved(key);
      return error;
    }
    return missing < 0 ? await this.#deletePods(owner, this.#podsToDelete(owner, pods, count), signal) : undefined;
  }

  #podsToDelete(owner: T, pods: readonly Pod[], count: number): readonly Pod[] {
    if (count >= pods.length) return pods;
    const perNode = new Map<string, number>();
    for (const pod of this.#relatedPods(owner)) {
      const node = pod.spec?.nodeName ?? "";
      perNode.set(node, (perNode.get(node) ?? 0) + 1);
    }
    const ranks = new Map(pods.map((pod) => [pod, perNode.get(pod.spec?.nodeName ?? "") ?? 0]));
    const now = this.#deps.clock.now();
    const usesCosts = isFeatureEnabled(this.#deps, "PodDeletionCost");
    const deleted = sortForDeletion(pods, ranks, now, usesCosts).slice(0, count);
    observeDeletion(this.#ageRatio, pods, deleted, now);
    return deleted;
  }

  /** Undefined where the status has no such number. */
  #countTerminating(owner: T, pods: readonly Pod[]): number | undefined {
    if (this.#type.kind.kind !== "ReplicaSet") return undefined;
    if (!isFeatureEnabled(this.#deps, "DeploymentReplicaSetTerminatingReplicas")) return undefined;
    const isOwned = (pod: Pod): boolean => controllerOf(pod)?.uid === owner.metadata?.uid;
    return pods.filter((pod) => isOwned(pod) && isTerminatingPod(pod)).length;
  }

  /** Active pods of all replica sets of the same deployment. */
  #relatedPods(owner: T): readonly Pod[] {
    const controller = controllerOf(owner);
    if (controller === undefined) return [];
    return this.#caches.ownersByOwner
      .owned(controller.uid)
      .flatMap(({ metadata }) => this.#caches.podsByOwner.owned(metadata?.uid ?? ""))
      .filter(isActive);
  }

  async #deletePods(owner: T, pods: readonly Pod[], signal: AbortSignal): Promise<unknown> {
    const key = keyOf(owner);
    this.#expectations.expectDeletions(key, pods.map(keyOf));
    const results = await Promise.allSettled(
      pods.map(async (pod) => {
        try {
          await this.#podControl.delete(pod, owner, signal);
        } catch (error) {
          this.#expectations.deletionObserved(key, keyOf(pod));
          if (statusCodeOf(error) === 404) return;
          // Kubernetes' words in the condition ReplicaFailure.
          throw new Error(`unable to delete pods: ${messageOf(error)}`, { cause: error });
        }
      }),
    );
    return results.find((result) => result.status === "rejected")?.reason;
  }

  /** Retries a conflict once with the current object: the status depends on pods, not on the rest of it. */
  async #updateStatus(owner: T, status: ReplicaSetStatus, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const { kind } = this.#type;
    try {
      await client.updateStatus(kind, { ...owner, status }, signal);
    } catch (error) {
      if (statusCodeOf(error) !== 409) {
        if (statusCodeOf(error) === 404) return;
        throw error;
      }
      const { name = "", namespace } = owner.metadata ?? {};
      const fresh = await client.get(kind, { name, namespace }, signal);
      if (fresh.metadata?.uid !== owner.metadata?.uid) throw error;
      await client.updateStatus(kind, { ...fresh, status }, signal);
    }
  }
}
