/** Requests that create, update and delete the pods of a stateful set and their claims, with events about it. */
import type { StatefulSet } from "../../api/apps/stateful-set/schema.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events/event-recorder.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { isAlreadyExists, statusCodeOf } from "../api-errors.ts";
import type { Expectations } from "../workload/expectations.ts";
import { keyOf, objectReference } from "../workload/object-keys.ts";
import { messageOf } from "../workload/pod-control.ts";
import {
  hasStaleReference,
  hasUnexpectedController,
  hasWantedOwner,
  retentionPolicy,
  withWantedOwner,
} from "./claim-retention.ts";
import { claimsOf, matchesIdentity, matchesStorage, nameOf, withIdentity, withStorage } from "./stateful-pods.ts";

/** As Kubernetes' retries of conflicts. */
const UPDATE_ATTEMPTS_MAX = 4;

export interface StatefulPodControlDeps {
  readonly client: Client;
  readonly recorder: EventRecorder;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly expectations: Expectations;
}

type Verb = "create" | "update" | "delete";

export class StatefulPodControl {
  readonly #deps: StatefulPodControlDeps;

  constructor(deps: StatefulPodControlDeps) {
    this.#deps = deps;
  }

  /** Creates the claims first. Rejects without an event if the pod exists, which the informer has not shown. */
  async create(set: StatefulSet, pod: Pod, signal: AbortSignal): Promise<void> {
    const { client, expectations } = this.#deps;
    try {
      await this.#createMissingClaims(set, pod, signal);
    } catch (error) {
      this.#recordPod("create", set, pod, error, signal);
      throw error;
    }
    expectations.raise(keyOf(set), 1, []);
    let created: Pod | undefined;
    let failure: unknown;
    try {
      created = await client.create(podKind, pod, signal);
    } catch (error) {
      expectations.creationObserved(keyOf(set));
      if (isAlreadyExists(error)) throw error;
      failure = error;
    }
    try {
      await this.updateClaimOwners(set, created ?? pod, signal);
    } catch (error) {
      this.#recordPod("update", set, pod, error, signal);
      throw error;
    }
    this.#recordPod("create", set, pod, failure, signal);
    if (failure !== undefined) throw failure;
  }

  /** Restores identity and storage of the pod, and owner references of its claims. Retries conflicts. */
  async update(set: StatefulSet, pod: Pod, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    let current = pod;
    for (let attempt = 1; ; attempt++) {
      const wanted = await this.#restore(set, current, signal);
      if (wanted === undefined) return;
      try {
        await client.update(podKind, wanted, signal);
        this.#recordPod("update", set, pod, undefined, signal);
        return;
      } catch (error) {
        const isConflict = statusCodeOf(error) === 409;
        if (!isConflict || attempt === UPDATE_ATTEMPTS_MAX) {
          this.#recordPod("update", set, pod, error, signal);
          throw error;
        }
      }
      current = await client.get(podKind, { name: nameOf(pod), namespace: pod.metadata?.namespace }, signal);
      if (current.metadata?.uid !== pod.metadata?.uid) return;
    }
  }

  /** Undefined if nothing differs. */
  async #restore(set: StatefulSet, pod: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    let wanted = matchesIdentity(set, pod) ? pod : withIdentity(set, pod);
    try {
      if (!matchesStorage(set, pod)) {
        wanted = withStorage(set, wanted);
        await this.#createMissingClaims(set, wanted, signal);
      }
      if (this.claimsHaveWantedOwners(set, pod)) return wanted === pod ? undefined : wanted;
      await this.updateClaimOwners(set, pod, signal);
      return wanted;
    } catch (error) {
      this.#recordPod("update", set, pod, error, signal);
      throw error;
    }
  }

  /** The condition on the UID protects a new pod with the same name, which the informer has not shown. */
  async delete(set: StatefulSet, pod: Pod, signal: AbortSignal): Promise<void> {
    const { client, expectations } = this.#deps;
    const { name = "", namespace, uid } = pod.metadata ?? {};
    expectations.raise(keyOf(set), 0, [keyOf(pod)]);
    try {
      await client.delete(podKind, { name, namespace }, { preconditions: { uid } }, signal);
    } catch (error) {
      expectations.deletionObserved(keyOf(set), keyOf(pod));
      this.#recordPod("delete", set, pod, error, signal);
      throw error;
    }
    this.#recordPod("delete", set, pod, undefined, signal);
  }

  claimsHaveWantedOwners(set: StatefulSet, pod: Pod): boolean {
    return this.#existingClaims(set, pod).every((claim) => hasWantedOwner(claim, set, pod));
  }

  /** For a pending pod, whose claims may have been deleted. */
  async createMissingClaimsWithOwners(set: StatefulSet, pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#createMissingClaims(set, pod, signal);
    try {
      await this.updateClaimOwners(set, pod, signal);
    } catch (error) {
      this.#recordPod("update", set, pod, error, signal);
      throw error;
    }
  }

  async updateClaimOwners(set: StatefulSet, pod: Pod, signal: AbortSignal): Promise<void> {
    const { recorder } = this.#deps;
    for (const claim of this.#existingClaims(set, pod)) {
      const name = claim.metadata?.name;
      if (hasUnexpectedController(claim, set, pod)) {
        const message =
          `PersistentVolumeClaim ${name} has a conflicting OwnerReference that acts as a manging controller, ` +
          "the retention policy is ignored for this claim";
        recorder.record(objectReference(set), "Warning", "ConflictingController", message);
      }
      await this.#updateClaimOwner(set, pod, claim, signal).catch((error: unknown) => {
        throw new Error(`could not update claim ${name} for delete policy ownerRefs: ${messageOf(error)}`, {
          cause: error,
        });
      });
    }
  }

  /** Retries conflicts: the volume binder writes new claims at the same time. */
  async #updateClaimOwner(
    set: StatefulSet,
    pod: Pod,
    claim: PersistentVolumeClaim,
    signal: AbortSignal,
  ): Promise<void> {
    const { client } = this.#deps;
    const { name = "", namespace, uid } = claim.metadata ?? {};
    let current = claim;
    for (let attempt = 1; !hasWantedOwner(current, set, pod); attempt++) {
      try {
        await client.update(persistentVolumeClaimKind, withWantedOwner(current, set, pod), signal);
        return;
      } catch (error) {
        if (statusCodeOf(error) !== 409 || attempt === UPDATE_ATTEMPTS_MAX) throw error;
      }
      current = await client.get(persistentVolumeClaimKind, { name, namespace }, signal);
      if (current.metadata?.uid !== uid) return;
    }
  }

  /** The claim of an earlier pod of the same name, which is deleted with that pod. */
  hasStaleClaim(set: StatefulSet, pod: Pod): boolean {
    if (retentionPolicy(set).whenScaled === "Retain") return false;
    return this.#existingClaims(set, pod).some((claim) => hasStaleReference(claim, pod));
  }

  #existingClaims(set: StatefulSet, pod: Pod): readonly PersistentVolumeClaim[] {
    return claimsOf(set, pod).flatMap(({ metadata }) => {
      return this.#deps.claims.get(metadata?.name ?? "", metadata?.namespace) ?? [];
    });
  }

  async #createMissingClaims(set: StatefulSet, pod: Pod, signal: AbortSignal): Promise<void> {
    const { client, claims } = this.#deps;
    const failures: string[] = [];
    for (const claim of claimsOf(set, pod)) {
      const { name = "", namespace } = claim.metadata ?? {};
      const existing = claims.get(name, namespace);
      if (existing?.metadata?.deletionTimestamp !== undefined) failures.push(`pvc ${name} is being deleted`);
      if (existing !== undefined) continue;
      try {
        await client.create(persistentVolumeClaimKind, claim, signal);
        this.#recordClaim(set, pod, name, undefined, signal);
      } catch (error) {
        failures.push(`failed to create PVC ${name}: ${messageOf(error)}`);
        if (!isAlreadyExists(error)) this.#recordClaim(set, pod, name, error, signal);
      }
    }
    if (failures.length > 0) throw new Error(failures.length === 1 ? failures[0] : `[${failures.join(", ")}]`);
  }

  #recordPod(verb: Verb, set: StatefulSet, pod: Pod, error: unknown, signal: AbortSignal): void {
    const subject = `${verb} Pod ${nameOf(pod)} in StatefulSet ${set.metadata?.name}`;
    this.#record(verb, set, error === undefined ? `${subject} successful` : `${subject} failed error: `, error, signal);
  }

  #recordClaim(set: StatefulSet, pod: Pod, claim: string, error: unknown, signal: AbortSignal): void {
    const name = set.metadata?.name;
    const message =
      error === undefined
        ? `create Claim ${claim} Pod ${nameOf(pod)} in StatefulSet ${name} success`
        : `create Claim ${claim} for Pod ${nameOf(pod)} in StatefulSet ${name} failed error: `;
    this.#record("create", set, message, error, signal);
  }

  #record(verb: Verb, set: StatefulSet, message: string, error: unknown, signal: AbortSignal): void {
    const suffix = `${verb.charAt(0).toUpperCase()}${verb.slice(1)}`;
    const { recorder } = this.#deps;
    if (error === undefined) {
      recorder.record(objectReference(set), "Normal", `Successful${suffix}`, message);
    } else if (!signal.aborted) {
      recorder.record(objectReference(set), "Warning", `Failed${suffix}`, `${message}${messageOf(error)}`);
    }
  }
}
