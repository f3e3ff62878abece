/** One sync of a deployment: its object, and the requests that change it and its replica sets. */
import { deploymentKind } from "../../api/apps/deployment/kind.ts";
import type { Deployment, DeploymentCondition, DeploymentStatus } from "../../api/apps/deployment/schema.ts";
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import type { Client } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events/event-recorder.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { isAlreadyExists, statusCodeOf } from "../api-errors.ts";
import { controllerOf, controllerReference, objectReference } from "../workload/object-keys.ts";
import { isNamespaceTerminating, messageOf } from "../workload/pod-control.ts";
import { computeHash } from "../workload/pod-template-hash.ts";
import { createCondition, findCondition, hasProgressDeadline, setCondition } from "./deployment-conditions.ts";
import { newReplicaSetSize, replicasOf } from "./deployment-numbers.ts";
import {
  findNewReplicaSet,
  hasSameTemplate,
  nextRevision,
  REVISION,
  replicaAnnotations,
  revisionAnnotations,
  TEMPLATE_HASH,
} from "./revisions.ts";

export interface SyncContext {
  readonly client: Client;
  readonly recorder: EventRecorder;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly signal: AbortSignal;
}

export interface Revisions {
  /** Undefined if no replica set has the deployment's template. */
  readonly current: ReplicaSet | undefined;
  readonly old: readonly ReplicaSet[];
}

export class DeploymentSync {
  /** As the server returned it last. */
  deployment: Deployment;
  readonly #context: SyncContext;

  constructor(deployment: Deployment, context: SyncContext) {
    this.deployment = deployment;
    this.#context = context;
  }

  get now(): number {
    return this.#context.now;
  }

  /** Brings revision annotations up to date, and creates the new replica set if `create`. */
  async syncRevisions(sets: readonly ReplicaSet[], create: boolean): Promise<Revisions> {
    const existing = findNewReplicaSet(this.deployment, sets);
    const old = sets.filter((set) => set !== existing);
    const revision = nextRevision(old);
    if (existing !== undefined) return { current: await this.#updateExisting(existing, revision), old };
    return { current: create ? await this.#createNew(old, revision) : undefined, old };
  }

  async #updateExisting(set: ReplicaSet, revision: bigint): Promise<ReplicaSet> {
    const before = set.metadata?.annotations ?? {};
    const annotations = revisionAnnotations(this.deployment, before, revision);
    const minReadySeconds = this.deployment.spec?.minReadySeconds ?? 0;
    const isCurrent = deepEqual(annotations, before) && (set.spec?.minReadySeconds ?? 0) === minReadySeconds;
    const metadata = { ...set.metadata, annotations };
    const updated = isCurrent
      ? set
      : await this.#updateSet({ ...set, metadata, spec: { ...set.spec!, minReadySeconds } });
    const isFound = hasProgressDeadline(this.deployment) && !findCondition(this.deployment.status, "Progressing");
    const condition = isFound
      ? this.#progressing("True", "FoundNewReplicaSet", `Found new replica set "${set.metadata?.name}"`)
      : undefined;
    await this.#writeRevision(annotations[REVISION] ?? "", condition);
    return updated;
  }

  async #createNew(old: readonly ReplicaSet[], revision: bigint): Promise<ReplicaSet> {
    const wanted = this.#newReplicaSet(old, revision);
    const { client, signal } = this.#context;
    let created: ReplicaSet;
    try {
      created = await client.create(replicaSetKind, wanted, signal);
    } catch (error) {
      if (!isAlreadyExists(error)) throw await this.#reportFailedCreate(wanted, error);
      const existing = await this.#resolveCollision(wanted, error);
      await this.#writeRevision(String(revision), undefined);
      return existing;
    }
    const name = created.metadata?.name;
    const size = replicasOf(created);
    if (size > 0) this.record("Normal", "ScalingReplicaSet", `Scaled up replica set ${name} from 0 to ${size}`);
    // Kubernetes' update after a resumption conflicts, and its next sync does not set the condition.
    const isResumed = findCondition(this.deployment.status, "Progressing")?.reason === "DeploymentResumed";
    const condition =
      hasProgressDeadline(this.deployment) && !isResumed
        ? this.#progressing("True", "NewReplicaSetCreated", `Created new replica set "${name}"`)
        : undefined;
    await this.#writeRevision(String(revision), condition);
    return created;
  }

  #newReplicaSet(old: readonly ReplicaSet[], revision: bigint): ReplicaSet {
    const { metadata, spec, status } = this.deployment;
    const template = spec?.template ?? {};
    const hash = computeHash(template, status?.collisionCount);
    const labels = { ...template.metadata?.labels, [TEMPLATE_HASH]: hash };
    const selector = spec?.selector ?? {};
    return {
      metadata: {
        name: `${metadata?.name}-${hash}`,
        namespace: metadata?.namespace,
        labels,
        annotations: { ...revisionAnnotations(this.deployment, {}, revision), ...replicaAnnotations(this.deployment) },
        ownerReferences: [controllerReference(this.deployment)],
      },
      spec: {
        replicas: newReplicaSetSize(this.deployment, old, 0),
        minReadySeconds: spec?.minReadySeconds,
        selector: { ...selector, matchLabels: { ...selector.matchLabels, [TEMPLATE_HASH]: hash } },
        template: { ...template, metadata: { ...template.metadata, labels } },
      },
    };
  }

  /** The replica set with the name is the deployment's own if the informer is late; otherwise the hash collides. */
  async #resolveCollision(wanted: ReplicaSet, error: unknown): Promise<ReplicaSet> {
    const { client, signal } = this.#context;
    const { name = "", namespace } = wanted.metadata ?? {};
    const existing = await client.get(replicaSetKind, { name, namespace }, signal);
    const isOwn = controllerOf(existing)?.uid === this.deployment.metadata?.uid;
    if (isOwn && hasSameTemplate(this.deployment, existing.spec?.template)) return existing;
    const collisionCount = (this.deployment.status?.collisionCount ?? 0) + 1;
    await this.writeStatus({ ...this.deployment.status, collisionCount });
    throw error;
  }

  async #reportFailedCreate(wanted: ReplicaSet, error: unknown): Promise<unknown> {
    if (isNamespaceTerminating(error) || this.#context.signal.aborted) return error;
    const message = `Failed to create new replica set "${wanted.metadata?.name}": ${messageOf(error)}`;
    this.record("Warning", "ReplicaSetCreateError", message);
    if (hasProgressDeadline(this.deployment)) {
      const condition = this.#progressing("False", "ReplicaSetCreateError", message);
      const conditions = setCondition(this.deployment.status?.conditions, condition);
      await this.writeStatus({ ...this.deployment.status, conditions }).catch(() => {});
    }
    return error;
  }

  /** Writes the annotation and the condition in one request, if they differ. */
  async #writeRevision(revision: string, condition: DeploymentCondition | undefined): Promise<void> {
    const { metadata, status } = this.deployment;
    const conditions = condition === undefined ? status?.conditions : setCondition(status?.conditions, condition);
    if (metadata?.annotations?.[REVISION] === revision && conditions === status?.conditions) return;
    const annotations = { ...metadata?.annotations, [REVISION]: revision };
    await this.#putStatus({
      ...this.deployment,
      metadata: { ...metadata, annotations },
      status: { ...status, conditions },
    });
  }

  /** Returns false if nothing differs. */
  async writeStatus(status: DeploymentStatus): Promise<boolean> {
    if (deepEqual(normalize(status), normalize(this.deployment.status))) return false;
    await this.#putStatus({ ...this.deployment, status });
    return true;
  }

  async #putStatus(deployment: Deployment): Promise<void> {
    this.deployment = await this.#context.client.updateStatus(deploymentKind, deployment, this.#context.signal);
  }

  /** Returns the set as it is afterwards. Records an event if the size changes. */
  async scale(set: ReplicaSet, size: number): Promise<ReplicaSet> {
    const before = replicasOf(set);
    const annotations = { ...set.metadata?.annotations, ...replicaAnnotations(this.deployment) };
    if (size === before && deepEqual(annotations, set.metadata?.annotations ?? {})) return set;
    const metadata = { ...set.metadata, annotations };
    const updated = await this.#updateSet({ ...set, metadata, spec: { ...set.spec!, replicas: size } });
    if (size !== before) {
      const direction = size > before ? "up" : "down";
      const message = `Scaled ${direction} replica set ${set.metadata?.name} from ${before} to ${size}`;
      this.record("Normal", "ScalingReplicaSet", message);
    }
    return updated;
  }

  async deleteSet({ metadata }: ReplicaSet): Promise<void> {
    const { client, signal } = this.#context;
    const { name = "", namespace } = metadata ?? {};
    await client.delete(replicaSetKind, { name, namespace }, {}, signal).catch((error: unknown) => {
      if (statusCodeOf(error) !== 404) throw error;
    });
  }

  recordSelectingAll(): void {
    const message = "This deployment is selecting all pods. A non-empty selector is required.";
    this.record("Warning", "SelectingAll", message);
  }

  async update(deployment: Deployment): Promise<void> {
    this.deployment = await this.#context.client.update(deploymentKind, deployment, this.#context.signal);
  }

  #updateSet(set: ReplicaSet): Promise<ReplicaSet> {
    return this.#context.client.update(replicaSetKind, set, this.#context.signal);
  }

  #progressing(status: "True" | "False", reason: string, message: string): DeploymentCondition {
    return createCondition("Progressing", status, [reason, message], this.now);
  }

  record(type: "Normal" | "Warning", reason: string, message: string): void {
    this.#context.recorder.record(objectReference(this.deployment), type, reason, message);
  }
}

function normalize(status: DeploymentStatus | undefined): unknown {
  return {
    observedGeneration: status?.observedGeneration ?? 0,
    replicas: status?.replicas ?? 0,
    updatedReplicas: status?.updatedReplicas ?? 0,
    readyReplicas: status?.readyReplicas ?? 0,
    availableReplicas: status?.availableReplicas ?? 0,
    unavailableReplicas: status?.unavailableReplicas ?? 0,
    terminatingReplicas: status?.terminatingReplicas,
    collisionCount: status?.collisionCount ?? 0,
    conditions: status?.conditions ?? [],
  };
}
